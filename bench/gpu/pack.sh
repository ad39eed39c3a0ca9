#!/bin/sh
# Prepares the first call on a GPU where there is none: build/gpu-pack gets the programs of first.sh
# and the kernel cache of an architecture. NVRTC compiles under null_driver.c. The keys of the cache
# do not depend on the machine. The programs are built for glibc 2.17 by the compiler of the Python
# package ziglang, which is installed below build/ if it can be; else they need the glibc of here.
# usage: pack.sh
# Environment:
#     ARCH          compute capability of the GPU; default: 90
#     ROWS          the rows; default: bench/gpu/rows.txt
#     PACK          the result; default: build/gpu-pack
#     PACK_TESTS    files of tests/cuda whose kernels are compiled too, by name; default: those that
#                   first.sh starts first; none: no files
#     PACK_FIRST    no: without the kernels of LeNet
#     PROGRAMS      a directory with programs that are built already
#     OLD_LIBC      no: the programs are built by CC
#     BUILD, CC, PYTHON, MAKE, as the Makefile sets them
: "${BUILD:=build/release}" "${CC:=cc}" "${PYTHON:=python3}" "${MAKE:=make}" \
    "${PACK:=build/gpu-pack}" "${ROWS:=bench/gpu/rows.txt}" "${ARCH:=90}" "${OLD_LIBC:=yes}"
. bench/gpu/tests.sh
: "${PACK_TESTS:=$FIRST}"
case $ARCH in
[7-9][0-9] | 1[0-9][0-9]) ;;
*) echo "pack.sh: ARCH=$ARCH; expected is a compute capability without its point, such as 90"
    exit 2 ;;
esac
JOBS=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
mkdir -p "$PACK/driver" && PACK=$(cd "$PACK" && pwd) || exit 1

# ---- programs: dynamic, because they open the driver ----
zig() { # makes build/gpu-programs/cc, a compiler for glibc 2.17
    [ "$OLD_LIBC" = yes ] && [ "$(uname -s)" = Linux ] || return 1
    tools=$PWD/build/ziglang
    if ! PYTHONPATH=$tools "$PYTHON" -c 'import ziglang' 2>/dev/null; then
        echo "installing the Python package ziglang in $tools, 100 MB"
        timeout 300 "$PYTHON" -m pip install -q --target "$tools" ziglang >/dev/null 2>&1 ||
            return 1
    fi
    mkdir -p build/gpu-programs
    printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -m ziglang cc -target %s-linux-gnu.2.17 "$@"\n' \
        "$tools" "$PYTHON" "$(uname -m)" >build/gpu-programs/cc
    chmod +x build/gpu-programs/cc
    echo 'int main(void) { return 0; }' >build/gpu-programs/probe.c
    build/gpu-programs/cc build/gpu-programs/probe.c -o build/gpu-programs/probe 2>/dev/null
}
built() { # DIRECTORY COMPILER
    MAKEFLAGS= "$MAKE" -s -j"$JOBS" B="$1" CC="$2" \
        "$1/bench/gpu/ours" "$1/cuda/tests" "$1/unit/tests" "$1/examples/run"
}
if [ -z "$PROGRAMS" ]; then
    PROGRAMS=build/gpu-programs
    if ! zig || ! built $PROGRAMS "$PWD/build/gpu-programs/cc"; then
        echo "no compiler for glibc 2.17 (the Python package ziglang); $CC builds the programs"
        PROGRAMS=$BUILD
        built "$BUILD" "$CC" || exit 1
    fi
fi
cp "$PROGRAMS/bench/gpu/ours" "$PACK/ours" && cp "$PROGRAMS/cuda/tests" "$PACK/cuda-tests" &&
    cp "$PROGRAMS/unit/tests" "$PACK/unit-tests" && cp "$PROGRAMS/examples/run" "$PACK/run" ||
    exit 1
strip "$PACK/ours" "$PACK/cuda-tests" "$PACK/unit-tests" "$PACK/run" 2>/dev/null
newest=$(objdump -T "$PACK/ours" "$PACK/cuda-tests" "$PACK/unit-tests" "$PACK/run" 2>/dev/null |
    sed -n 's/.*(*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)

# ---- MNIST, for the rows of whole trainings ----
for folder in "$DEVTENSOR_DATA" data shared/data ../shared/data; do
    [ -n "$folder" ] && [ -f "$folder/mnist-train-images-idx3-ubyte.gz" ] || continue
    mkdir -p "$PACK/data" && cp "$folder"/mnist-*-ubyte.gz "$PACK/data/"
    break
done

# ---- kernels; those of other sources are removed ----
sum=$(sum_of_sources)
[ "$(sed -n 's/^sources //p' "$PACK/about" 2>/dev/null)" = "$sum" ] || rm -rf "$PACK/kernels"
(umask 077 && mkdir -p "$PACK/kernels") && chmod -R u=rwX,go= "$PACK/kernels" || exit 1
$CC -O1 -w -shared -fPIC bench/gpu/null_driver.c -o "$PACK/driver/libcuda.so.1" || exit 1
run() { # command: with the driver that does nothing
    env DEVTENSOR_CUDA_PATH="$PACK/driver/libcuda.so.1" BENCH_GPU_ARCH="$ARCH" \
        DEVTENSOR_CACHE_DIR="$PACK/kernels" DEVTENSOR_ISA= "$@"
}
log=$PACK/log.txt
run "$PACK/ours" gpu >"$log" 2>&1 || { cat "$log"; exit 1; }
run "$PACK/ours" "$ROWS" "$PACK/lines" --prepare --limit 600 >>"$log" 2>&1 || {
    tail -n 5 "$log"
    cat "$PACK/lines" 2>/dev/null
    exit 1
}
[ "$PACK_FIRST" = no ] || run "$PACK/ours" first >>"$log" 2>&1
# Results are zeros, so tests fail: ignored. As many files at once as there are processors.
kernels_of() { # names of files of tests/cuda
    echo "kernels of the tests: $*"
    printf '%s\n' "$@" | run xargs -n 1 -P "$JOBS" sh -c \
        'timeout 600 "$0/cuda-tests" "test_gpu_$1.c" >"$0/driver/$1.txt" 2>&1
        [ $? -ne 124 ] || echo "test_gpu_$1.c was cut after 600 s; kernels may be missing"' "$PACK"
    cat "$PACK"/driver/*.txt >>"$log"
}
# shellcheck disable=SC2086
[ "$PACK_TESTS" = none ] || kernels_of $PACK_TESTS
rm -rf "$PACK/driver" "$PACK/lines"
count=$(find "$PACK/kernels" -type f | wc -l)
[ "$count" -gt 0 ] || { echo "pack.sh: no kernel was compiled; is NVRTC here?"; exit 1; }
if [ "$ARCH" = 90 ] && grep -q 'k=4096 dtype=bf16' "$ROWS" &&
    ! grep -qr dvti_matmul_wgmma "$PACK/kernels"; then
    echo "pack.sh: no kernel with wgmma was compiled for compute capability 90"
    exit 1
fi
printf 'sources %s\ncommit %s\ndate %s\narch %s\nglibc %s\nkernels %s\n' "$sum" "$(commit_here |
    tr -d '\n')" "$(date -u +%Y-%m-%dT%H:%MZ)" "$ARCH" "$newest" "$count" >"$PACK/about"
chmod -R go+rX "$PACK"
echo "$PACK: $count kernels for compute capability $ARCH, $(du -sh "$PACK" | cut -f 1);" \
    "the programs need GLIBC_$newest"
