#!/bin/sh
# The CUDA kernels compiled for real architectures, with no card; see compile_all.c. A process for each architecture, because NVRTC
# compiles one program at a time. Arguments: as of compile_all. Environment: BUILD, CC, LIBS, as the Makefile sets them.
. tests/lib.sh
BUILD=${BUILD:-build/release}
D=$BUILD/cuda/compile
archs=
options=
for argument in "$@"; do
    case $argument in
    -*) options="$options $argument" ;;
    *) archs="$archs $argument" ;;
    esac
done
mkdir -p "$D"
${CC:-cc} -std=gnu11 -O0 -I. tests/cuda/compile/compile_all.c -o "$D/compile_all" ${LIBS:--lm -ldl -lpthread} || {
    fail compile_all "it does not compile"
    finish
}
for arch in ${archs:-75 90 120}; do
    "$D/compile_all" $options "$arch" >"$D/$arch.log" 2>"$D/$arch.errors" &
done
wait
for arch in ${archs:-75 90 120}; do
    echo "sm_$arch"
    script "compile_all $arch" cat "$D/$arch.log"
done
finish
