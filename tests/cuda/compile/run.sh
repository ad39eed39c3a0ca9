#!/bin/sh
# Compiles the CUDA kernels for real architectures without a GPU (see compile_all.c), and by a
# second compiler. One process per architecture, because NVRTC compiles one program at a time; as
# many in parallel as there are processors.
# usage: run.sh [--list] [OPTION...] [ARCHITECTURE...]     options of compile_all: --only=functions
#   no argument (`make test`):
#     - Compiles every family's usual program and checks spills and the size of the arguments. The
#       architectures are those that the sources distinguish (7.5, 8.0, 12.0). Each line for 10.0 is
#       also one for 9.0 or 12.0.
#     - For 9.0 also compiles every family with all that selects its program, and checks that three
#       operations compile three programs.
#     - Runs clang's CUDA front end on every family's usual program.
#   --full (DVT_TEST_FULL=1): compiles all operations, dtypes and layouts for all eight
#     architectures, by NVRTC and by clang.
# The forms of PTX instructions in these programs are then compared with the list of those that the
# translator's unit tests must cover (tests/simcuda/README.md). A form missing from the list is an
# error; so is an unused one after --full for all architectures of the list. --list rewrites it:
#   sh tests/cuda/compile/run.sh --full --ptx --list 75 80 90 120
# Environment: BUILD, CC, LIBS, MAKE, as the Makefile sets them; JOBS: processes at a time; CLANG
# for another clang++.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}"
D=$BUILD/cuda/compile
JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
CLANG=${CLANG:-clang++}
ALL="75 80 86 89 90 90a 100 120"
APART="75 80 120" # by __CUDA_ARCH__ in src/3_cuda/kernels; 90 is compiled in full
O=build/simcuda # the translator, whatever the configuration
LIST=tests/simcuda/check/kernel_forms.txt
LIST_ARCHS="75 80 90 120"
LC_ALL=C
export LC_ALL
archs=
options=
for argument in "$@"; do
    case $argument in
    --list) list=1 ;;
    -*) options="$options $argument" ;;
    *) archs="$archs $argument" ;;
    esac
done
rm -rf "$D"
mkdir -p "$D/cubins"
if ! MAKEFLAGS= ${MAKE:-make} -s -f tests/simcuda/Makefile O=$O CC="$CC" $O/lib/libptx.a \
    >"$D/make.log" 2>&1; then
    tail -n 25 "$D/make.log"
    fail "the translator" "it does not compile"
    finish
    exit 1
fi
$(quick_cc) -std=gnu11 -O0 -I. tests/cuda/compile/compile_all.c $O/lib/libptx.a \
    -o "$D/compile_all" ${LIBS:--lm -ldl -lpthread} || {
    fail compile_all "it does not compile"
    finish
    exit 1
}

# ---- NVRTC: one line per process, the longest first ----
[ -n "$archs$options" ] || default=1
: "${archs:=$ALL}"
if [ -n "$default" ]; then
    echo "90 --cubins=$D/cubins"
    for arch in $APART; do echo "$arch --base"; done
    echo "90 --three"
else
    for arch in $archs; do echo "$arch$options"; done
fi >"$D/runs"
# Keeps the sources for the second compiler where it supports the architecture.
awk '{ print NR, $0 }' "$D/runs" | xargs -P "$JOBS" -L 1 sh -c '
    at=$0/$1
    shift
    unset DEVTENSOR_JIT_DUMP
    case $1 in 75 | 80) mkdir "$at.sources" && export DEVTENSOR_JIT_DUMP="$at.sources" ;; esac
    "$0/compile_all" --forms="$at.forms" "$@" >"$at.log" 2>"$at.errors"
    echo $? >"$at.code"' "$D"
run=0
while read -r arguments; do
    run=$((run + 1))
    echo "compile_all $arguments"
    script "compile_all $arguments" sh -c 'cat "$0.log"; exit "$(cat "$0.code")"' "$D/$run"
done <"$D/runs"

# ---- machine code for sm_90a, where the toolkit has a disassembler ----
NVDISASM=${NVDISASM:-nvdisasm}
has "$NVDISASM" || NVDISASM=${CUDA_HOME:-/usr/local/cuda}/bin/nvdisasm
count() { grep -cE "$1" "$2"; }
# One loop over the depth: four products in one group and copies of 4 or 6 boxes, or of two parts
# twelve and 8; two warpgroups that change their registers; and no call, which would save registers
# around it.
check_sass() { # FILE NAME
    products=$(count 'HGMMA[.]64x(128|256)x(16[.]F32|8[.]F32[.]TF32)' "$1")
    groups=$(count 'HGMMA.*gsb0' "$1")
    copies=$(count 'UTMALDG[.]3D' "$1")
    waits=$(count 'SYNCS[.]PHASECHK' "$1")
    registers=$(count 'USETMAXREG' "$1")
    bad=$(count '(STL|LDL|CALL)[. ]' "$1")
    case $products/$copies in
    4/4 | 4/6 | 12/8)
        [ "$groups" -eq 1 ] && [ "$waits" -ge 2 ] && [ "$bad" -eq 0 ] && [ "$registers" -eq 2 ] &&
            pass && return
        ;;
    esac
    fail "the machine code of $2" "$products HGMMA in $groups groups, $copies UTMALDG, $waits \
waits, $registers USETMAXREG, $bad spills and calls"
}
if ! ls "$D"/cubins/*.cubin >/dev/null 2>&1; then
    [ -z "$default" ] || skip "machine code for sm_90a" "NVRTC has compiled none"
elif ! has "$NVDISASM"; then
    skip "machine code for sm_90a" "no nvdisasm"
else
    for cubin in "$D"/cubins/*.cubin; do
        "$NVDISASM" -c "$cubin" >"$cubin.sass" 2>"$cubin.said"
        check_sass "$cubin.sass" "$(basename "$cubin")"
    done
fi

# ---- clang ----
# Disabled warnings: style, and parameters that an architecture or an operation does not use. Also
# integers compared with themselves where a template tests for NaN, and parentheses of a macro in
# `#pragma unroll`.
cat >"$D/second.sh" <<'END'
"$CLANG" -x cuda --cuda-device-only --cuda-gpu-arch="$1" -std=c++17 -nocudainc -nocudalib \
    -Xclang -target-feature -Xclang +ptx70 -Wall -Wextra -Werror -Wno-unknown-cuda-version \
    -Wno-parentheses -Wno-unused-parameter -Wno-sign-compare -Wno-tautological-compare \
    -Wno-cuda-compat -include tests/cuda/compile/second.h -S "$2" -o /dev/null >"$2.said" 2>&1 ||
    echo "$2" >>"$3"
END
export CLANG
echo '__global__ void nothing() {}' >"$D/nothing.cu"
sources=$(ls -d "$D"/*.sources 2>/dev/null)
if [ -z "$sources" ]; then
    [ -z "$default" ] || skip "clang on the kernels" "NVRTC has compiled nothing"
elif ! has "$CLANG"; then
    skip "clang on the kernels" "$CLANG is not installed"
elif ! sh "$D/second.sh" sm_80 "$D/nothing.cu" "$D/refused" || [ -s "$D/refused" ]; then
    skip "clang on the kernels" \
        "$CLANG has no CUDA front end that works: $(head -n 1 "$D/nothing.cu.said")"
else
    for folder in $sources; do
        arch=$(sed -n "$(basename "$folder" .sources)p" "$D/runs" | cut -d " " -f 1)
        : >"$D/refused"
        ls "$folder"/*.cu | xargs -P "$JOBS" -I{} sh "$D/second.sh" "sm_$arch" {} "$D/refused"
        while read -r file; do
            variant=$(sed -n '/^#line 1 "variant"/,/^#line 1 "[a-z_]*.cu"/p' "$file" | tr '\n' ' ')
            fail "clang, sm_$arch: $variant" "$(head -n 12 "$file.said")"
        done <"$D/refused"
        accepted=$(($(ls "$folder"/*.cu | wc -l) - $(wc -l <"$D/refused")))
        passed=$((passed + accepted))
        echo "clang accepts $accepted programs for sm_$arch"
    done
fi

# ---- the forms ----
# Whether this run covers everything that the list contains.
is_complete() {
    case " $options " in *" --full "*) ;; *) return 1 ;; esac
    case "$options" in *--only*) return 1 ;; esac
    for arch in $LIST_ARCHS; do
        case " $archs " in *" $arch "*) ;; *) return 1 ;; esac
    done
}
each_form() { # the message for each line
    while read -r form; do fail "the form \"$form\"" "$1"; done
}
compare_forms() {
    grep -v '^#' "$LIST" | sort -u >"$D/listed"
    comm -13 "$D/listed" "$D/forms" >"$D/unlisted"
    comm -23 "$D/listed" "$D/forms" >"$D/gone"
    is_complete || : >"$D/gone"
    each_form "the kernels have it, and it is not in $LIST" <"$D/unlisted"
    each_form "it is in $LIST, and no kernel has it" <"$D/gone"
    [ -s "$D/unlisted" ] || [ -s "$D/gone" ] || pass
}
if ! cat "$D"/*.forms >"$D/all" 2>/dev/null; then
    skip "the forms of PTX instructions" "nothing was compiled"
else
    grep -v '^#' "$D/all" | sort -u >"$D/forms"
    nvrtc=$(grep '^# NVRTC' "$D/all" | sort -u)
    if [ -n "$list" ]; then
        { echo "$nvrtc" && cat "$D/forms"; } >"$LIST"
    fi
    if [ "$nvrtc" = "$(head -n 1 "$LIST")" ]; then
        compare_forms
    else
        skip "the forms of PTX instructions" \
            "the list is of $(head -n 1 "$LIST" | cut -c3-); this is ${nvrtc#??}"
    fi
fi
finish
