#!/bin/sh
# Builds the tests of the translator and of the NVRTC double, then runs each program of this
# directory. They share a cache of compiled modules, so a second run takes seconds. Environment:
# BUILD (their own build directory), CC, MAKE; SIMNVRTC_CC compiles modules.
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
    skip translator "no C compiler for the translated device code: set SIMNVRTC_CC"
    finish
    exit
fi
if ! MAKEFLAGS= "$MAKE" -s -j2 -f tests/simcuda/Makefile O="$BUILD" CC="$CC" translator \
    >"$BUILD/make.log" 2>&1; then
    tail -n 25 "$BUILD/make.log"
    fail translator "the build failed"
    finish
    exit 1
fi
case $BUILD in /*) all=$BUILD ;; *) all=$PWD/$BUILD ;; esac
SIMCUDA_CACHE=${SIMCUDA_CACHE:-$all/cache}
SIMCUDA_LIB=$all/lib
export SIMCUDA_CACHE SIMCUDA_LIB
rm -rf "$BUILD/forms"
mkdir -p "$BUILD/forms"
for program in tests/simcuda/check/check_*.c; do
    name=$(basename "$program" .c)
    script "$name" env SIMCUDA_FORMS="$BUILD/forms/$name" "$BUILD/check/$name"
done
# One of them must run every instruction form of our kernels (README.md). The list has these forms;
# tests/cuda/compile/run.sh compares it with the kernels.
cat "$BUILD"/forms/check_* | LC_ALL=C sort -u >"$BUILD/forms/covered"
grep -v '^#' tests/simcuda/check/kernel_forms.txt | LC_ALL=C sort -u |
    LC_ALL=C comm -23 - "$BUILD/forms/covered" >"$BUILD/forms/missing"
while read -r form; do
    fail "the form \"$form\"" "our kernels have it, and no unit test of the translator runs it"
done <"$BUILD/forms/missing"
[ -s "$BUILD/forms/missing" ] || pass
# Modules from another compiler, with other casts, rounding and inlining; and without memory checks.
# By default some of them; DVT_TEST_FULL=1 runs more.
if has clang; then
    for name in check_float check_convert check_warp \
        ${DVT_TEST_FULL:+check_half check_matrix check_flow}; do
        script "$name, modules by clang" env SIMNVRTC_CC=clang "$BUILD/check/$name"
    done
else
    skip "modules by clang" "no clang"
fi
for name in check_atomic check_warp ${DVT_TEST_FULL:+check_integer check_flow}; do
    script "$name, unchecked" env SIMCUDA_CHECK=0 "$BUILD/check/$name"
done
finish
