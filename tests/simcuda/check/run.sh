#!/bin/sh
# Tests of the translator and of the NVRTC double: builds them, then runs each program of this folder. They share a cache of compiled
# modules, so that a second run takes seconds. Environment: BUILD (a folder of their own), CC, MAKE; SIMNVRTC_CC compiles modules.
. tests/lib.sh
: "${BUILD:=build/simcuda}" "${CC:=cc}" "${MAKE:=make}"
mkdir -p "$BUILD"
case $(uname -s)-$(uname -m) in
Linux-x86_64 | Linux-aarch64) ;;
*)
    skip translator "device code is simulated on Linux, x86-64 or aarch64"
    finish
    exit
    ;;
esac
module_cc=${SIMNVRTC_CC:-cc}
if ! has "${CC%% *}" || ! has "${module_cc%% *}"; then
    skip translator "no C compiler that device code could be translated for: set SIMNVRTC_CC"
    finish
    exit
fi
if ! MAKEFLAGS= "$MAKE" -s -j2 -f tests/simcuda/Makefile O="$BUILD" CC="$CC" translator >"$BUILD/make.log" 2>&1; then
    tail -n 25 "$BUILD/make.log"
    fail translator "the build failed"
    finish
    exit 1
fi
case $BUILD in /*) all=$BUILD ;; *) all=$PWD/$BUILD ;; esac
SIMCUDA_CACHE=${SIMCUDA_CACHE:-$all/cache}
SIMCUDA_LIB=$all/lib
export SIMCUDA_CACHE SIMCUDA_LIB
for program in tests/simcuda/check/check_*.c; do
    name=$(basename "$program" .c)
    script "$name" "$BUILD/check/$name"
done
# Modules by another compiler, where casts, rounding and inlining could differ; and without the memory checks.
if has clang; then
    for name in check_float check_convert check_half check_matrix check_warp check_flow; do
        script "$name, modules by clang" env SIMNVRTC_CC=clang "$BUILD/check/$name"
    done
else
    skip "modules by clang" "no clang"
fi
for name in check_integer check_atomic check_warp check_flow; do
    script "$name, unchecked" env SIMCUDA_CHECK=0 "$BUILD/check/$name"
done
finish
