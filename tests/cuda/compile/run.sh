#!/bin/sh
# The CUDA kernels compiled for real architectures, with no card; see compile_all.c. A process for each architecture, because NVRTC
# compiles one program at a time. Then the forms of PTX instructions in what was compiled are compared with the list of those that the
# unit tests of the translator must cover (tests/simcuda/README.md): there may be none that the list lacks, and after --full for all
# architectures of the list none too many in it. Arguments: as of compile_all; --list writes the list anew:
#   sh tests/cuda/compile/run.sh --full --ptx --list 75 80 90 120
# Environment: BUILD, CC, LIBS, MAKE, as the Makefile sets them.
. tests/lib.sh
BUILD=${BUILD:-build/release}
D=$BUILD/cuda/compile
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
: "${archs:=75 90 120}"
mkdir -p "$D"
if ! MAKEFLAGS= ${MAKE:-make} -s -f tests/simcuda/Makefile O=$O CC="${CC:-cc}" $O/lib/libptx.a >"$D/make.log" 2>&1; then
    tail -n 25 "$D/make.log"
    fail "the translator" "it does not compile"
    finish
    exit 1
fi
${CC:-cc} -std=gnu11 -O0 -I. tests/cuda/compile/compile_all.c $O/lib/libptx.a -o "$D/compile_all" ${LIBS:--lm -ldl -lpthread} || {
    fail compile_all "it does not compile"
    finish
    exit 1
}
rm -f "$D"/*.forms
for arch in $archs; do
    "$D/compile_all" $options --forms="$D/$arch.forms" "$arch" >"$D/$arch.log" 2>"$D/$arch.errors" &
done
wait
for arch in $archs; do
    echo "sm_$arch"
    script "compile_all $arch" cat "$D/$arch.log"
done

# ---- the forms ----
# Is this all that the list is made of?
is_complete() {
    case " $options " in *" --full "*) ;; *) return 1 ;; esac
    case "$options" in *--only*) return 1 ;; esac
    for arch in $LIST_ARCHS; do
        case " $archs " in *" $arch "*) ;; *) return 1 ;; esac
    done
}
each_form() { # what is said of each line
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
        skip "the forms of PTX instructions" "the list is of $(head -n 1 "$LIST" | cut -c3-); this is ${nvrtc#??}"
    fi
fi
finish
