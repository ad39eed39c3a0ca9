#!/bin/sh
# The performance model's counts: memory sectors, wavefronts of shared memory and instructions of
# the kernels, counted by the simulated driver and compared with expected.txt (docs/GPU_MODEL.md).
# By default a selection of rows, without ptxas. DVT_TEST_FULL=1: all rows, and the registers that
# ptxas reports. --update: writes expected.txt.
# usage: model.sh [--update]
# Environment: BUILD, LIBRARY_BUILD, CC, LIBRARY, LIBS, as run.sh sets them.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${LIBS:=-lm -ldl -lpthread}" "${MAKE:=make}"
: "${LIBRARY:=${LIBRARY_BUILD:-$BUILD}/devtensor.o}"
M=tests/cuda/model
D=$BUILD/model
O=build/simcuda
umask 077
mkdir -p "$D"
if [ "$1" = --update ]; then
    DVT_TEST_FULL=1
    if ! MAKEFLAGS= $MAKE -s -j2 -f tests/simcuda/Makefile O=$O CC="$CC" all >"$D/simcuda.log" 2>&1
    then
        tail -n 25 "$D/simcuda.log"
        exit 1
    fi
fi
$CC -std=gnu11 -O1 -I. $M/model.c $LIBRARY -o "$D/model" $LIBS || {
    fail "cuda/model" "model.c does not compile"
    finish
    exit 1
}

# Modules that count are others than those of the tests, so they have their own caches.
counted=$PWD/$O/counted
usage=
rows=--quick
if [ -n "$DVT_TEST_FULL" ]; then
    counted=$counted-usage
    usage=1
    rows=
fi
mkdir -p "$counted/kernels"
LC_ALL=C
export LC_ALL
unset DEVTENSOR_CUDA DEVTENSOR_CUDA_PATH DEVTENSOR_NVRTC_PATH DEVTENSOR_VIRTUAL_GPUS \
    DEVTENSOR_CACHE DEVTENSOR_SYNC DEVTENSOR_TF32
if ! env LD_LIBRARY_PATH="$PWD/$O/lib" DEVTENSOR_CACHE_DIR="$counted/kernels" \
    SIMCUDA_CACHE="$counted/modules" SIMCUDA_COUNT=1 SIMNVRTC_USAGE=$usage SIMCUDA_CHECK=0 \
    SIMCUDA_RACES=0 SIMCUDA_DEVICES=1 SIMCUDA_CC=90 SIMCUDA_SMS=4 SIMCUDA_POLICY=lazy \
    SIMNVRTC_CC="${SIMNVRTC_CC:-cc -O0}" \
    "$D/model" $rows >"$D/counts.txt" 2>"$D/errors.txt"; then
    fail "cuda/model" "$(tail -n 3 "$D/errors.txt")"
    finish
    exit 1
fi
if [ "$1" = --update ]; then
    cp "$D/counts.txt" $M/expected.txt
    echo "wrote $M/expected.txt"
    exit
fi
compare() { awk -v all="$1" -f $M/compare.awk $M/expected.txt "$2"; }
script "cuda/model" compare "$usage" "$D/counts.txt"
# The comparison itself must fail on the first row with 3 % more sectors.
awk '!done && $1 == "loads" { $5 = int($5 * 1.03) + 1; done = 1 } { print }' "$D/counts.txt" \
    >"$D/more.txt"
if compare "" "$D/more.txt" >"$D/more.log" || ! grep -q "sectors: expected .*slower" "$D/more.log"
then
    fail "the comparison of counts" "it accepts 3 % more sectors"
else
    pass
fi
finish
