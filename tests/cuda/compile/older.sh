#!/bin/sh
# Compiles the CUDA kernels with an older NVRTC, 12.0, which it gets as a wheel by pip: every
# family's usual program for 7.5 and 8.0, and for 9.0 every family with all that selects its
# program.
# Environment: BUILD, CC, LIBS, MAKE, PYTHON; NVRTC: the library to use instead.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${MAKE:=make}" "${PYTHON:=python3}" \
    "${LIBS:=-lm -ldl -lpthread}"
WHEEL=nvidia-cuda-nvrtc-cu12==12.0.140
D=$BUILD/cuda/older
O=build/simcuda
rm -rf "$D"
mkdir -p "$D"

if [ -z "$NVRTC" ]; then
    PLACE=build/nvrtc-12.0
    NVRTC=$PLACE/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
    if [ ! -f "$NVRTC" ]; then
        mkdir -p $PLACE
        "$PYTHON" -m pip download -q --no-deps --only-binary :all: -d $PLACE $WHEEL \
            >"$D/download.log" 2>&1 &&
            "$PYTHON" -m zipfile -e $PLACE/*.whl $PLACE >>"$D/download.log" 2>&1
    fi
fi
if [ ! -f "$NVRTC" ]; then
    skip "kernels with NVRTC 12.0" "no wheel: $(tail -n 1 "$D/download.log" 2>/dev/null)"
    finish
    exit
fi
if ! MAKEFLAGS= "$MAKE" -s -f tests/simcuda/Makefile O=$O CC="$CC" $O/lib/libptx.a \
    >"$D/make.log" 2>&1 ||
    ! $CC -std=gnu11 -O0 -I. tests/cuda/compile/compile_all.c $O/lib/libptx.a \
        -o "$D/compile_all" $LIBS >>"$D/make.log" 2>&1; then
    fail "compile_all" "$(tail -n 5 "$D/make.log")"
    finish
    exit 1
fi
DEVTENSOR_NVRTC_PATH=$(cd "$(dirname "$NVRTC")" && pwd)/$(basename "$NVRTC")
export DEVTENSOR_NVRTC_PATH
printf '90\n75 --base\n80 --base\n' | xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 sh -c '
    "$0/compile_all" "$@" >"$0/$1.log" 2>&1
    echo $? >"$0/$1.code"' "$D"
for arch in 75 80 90; do
    script "NVRTC 12.0 for $arch" sh -c 'cat "$0.log"; exit "$(cat "$0.code")"' "$D/$arch"
done
finish
