#!/bin/sh
# Runs work of several streams and GPUs in the lazy order and in random ones, which must all give
# the same bits. SEEDS=n tries n random orders (default: 3, and 40 with DVT_TEST_FULL=1). Then
# proves that a missing event is found: waits are removed from the library one at a time, and some
# order must give wrong results.
# Environment: BUILD, CC, LIBRARY, SIM (the directory of the simulated driver).
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${CC:=cc}" "${LIBRARY:=$BUILD/devtensor.o}" "${SIM:=build/simcuda/lib}" \
    "${SEEDS:=${DVT_TEST_FULL:+40}}" "${SEEDS:=3}" "${LIBS:=-lm -ldl -lpthread}"
if [ ! -f "$SIM/libcuda.so.1" ]; then
    skip "orders of work" "no simulated driver in $SIM"
    finish
    exit
fi
work=$BUILD/cuda-orders
mkdir -p "$work"
mkdir -p -m 700 "${DEVTENSOR_CACHE_DIR:=$work/kernels}" "${SIMCUDA_CACHE:=$work/modules}"
export DEVTENSOR_CACHE_DIR SIMCUDA_CACHE SIMCUDA_MEM=256M SIMCUDA_ARENA=1G SIMCUDA_DEVICES=4 \
    SIMCUDA_RACES=0
unset DEVTENSOR_CACHE DEVTENSOR_VIRTUAL_GPUS DEVTENSOR_CUDA DEVTENSOR_P2P DEVTENSOR_SYNC \
    DEVTENSOR_NVRTC_PATH

tests=$here/training.c
for name in copies memory pinned process; do tests="$tests tests/cuda/test_gpu_$name.c"; done
objects=
for source in tests/dvt_test.c $tests; do
    object=$work/$(basename "$source" .c).o
    try "$source compiles" $CC -std=gnu11 -O1 -g -I. -Itests -c "$source" -o "$object"
    objects="$objects $object"
done
try "the tests are linked" $CC $objects $LIBRARY -o "$work/tests" $LIBS

# under POLICY SEED PROGRAM [VARIABLE=VALUE]: runs it; its output is in $work/said.
under() {
    env LD_LIBRARY_PATH="$SIM" SIMCUDA_POLICY="$1" SIMCUDA_SEED="$2" $4 timeout 300 "$3" \
        >"$work/said" 2>"$work/err"
}
weights() { grep '^weights after' "$work/said"; }

under lazy 1 "$work/tests"
weights >"$work/expected"
[ "$(wc -l <"$work/expected")" -eq 4 ] && pass ||
    fail "training on one to four gpus" "$(tail -n 3 "$work/said")"
agrees() { # POLICY SEED
    if under "$1" "$2" "$work/tests" && weights | cmp -s - "$work/expected"; then pass; else
        fail "$1 order, seed $2" "$(grep -v '^weights' "$work/said" | head -n 5)
$(tail -n 5 "$work/err")"
        weights | diff - "$work/expected" | head -n 4
    fi
}
agrees lazy 1
agrees eager 1
seed=1
while [ "$seed" -le "$SEEDS" ]; do
    agrees random "$seed"
    seed=$((seed + 1))
done

# ---- planted mistakes: the letter in PLANTED selects the wait that is removed ----
waits='dvti_cuda()->cuStreamWaitEvent'
sed -e "s/result = \($waits(stream, mark->event, 0);\)/result = planted('a') ? DVTI_CU_OK : \1/" \
    -e "s/result = \($waits(stream, (mark\)/result = planted('b') ? DVTI_CU_OK : \1/" \
    -e "s/result = \($waits(gpu->compute, gpu->place\)/result = planted('c') ? DVTI_CU_OK : \1/" \
    devtensor.h >"$work/devtensor.h"
[ "$(grep -c "planted('[abc]')" "$work/devtensor.h")" -eq 3 ] && pass ||
    fail "the waits to remove were not found"
cat >"$work/planted.c" <<'C'
#define _GNU_SOURCE
#include <stdlib.h>
static int planted(char which) {
    const char *chosen = getenv("PLANTED");
    return chosen && *chosen == which;
}
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
C
if [ ! "$work/planted.o" -nt devtensor.h ]; then
    try "the library with mistakes compiles" $(quick_cc) -std=gnu11 -O0 -g -DDEVTENSOR_NO_SIMD \
        -I"$work" -c "$work/planted.c" \
        -o "$work/planted.o"
fi
try "the tests are linked with it" $CC $objects "$work/planted.o" -o "$work/planted" $LIBS
same_as_expected() {
    under "$1" "$2" "$work/planted" "PLANTED=$3" && weights | cmp -s - "$work/expected"
}
if same_as_expected lazy 1 none; then pass; else fail "the copy without a mistake is correct"; fi
found() { # LETTER NAME: the lazy order or one of the first seeds must detect it
    same_as_expected lazy 1 "$1" || { pass; return; }
    for seed in 1 2 3 4 5; do same_as_expected random $seed "$1" || { pass; return; }; done
    fail "a missing wait is found" "$2"
}
found a "another stream does not wait for the kernels before it"
found b "an upload does not wait for the last use of its memory"
found c "a kernel does not wait for the copy that brings its data"
finish
