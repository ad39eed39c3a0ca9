#!/bin/sh
# Makes driver and NVRTC calls of a scenario fail (faults.c). By default the scenario is short, and
# of each function the first two calls fail, then every eleventh. FULL=1 runs the long scenario,
# with a network of two layers and more than one step, and makes every call fail once.
# Environment: BUILD, CC, LIBRARY, SIM (the directory of the simulated driver).
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${CC:=cc}" "${LIBRARY:=$BUILD/devtensor.o}" "${SIM:=build/simcuda/lib}" \
    "${LIBS:=-lm -ldl -lpthread}"
if [ ! -f "$SIM/libcuda.so.1" ]; then
    skip "failing calls" "no simulated driver in $SIM"
    finish
    exit
fi
work=$BUILD/cuda-faults
mkdir -p "$work"
mkdir -p -m 700 "${DEVTENSOR_CACHE_DIR:=$work/kernels}" "${SIMCUDA_CACHE:=$work/modules}"
export DEVTENSOR_CACHE_DIR SIMCUDA_CACHE LD_LIBRARY_PATH="$SIM" SIMCUDA_MEM=256M SIMCUDA_ARENA=1G
unset DEVTENSOR_CACHE DEVTENSOR_VIRTUAL_GPUS DEVTENSOR_CUDA DEVTENSOR_P2P DEVTENSOR_SYNC \
    DEVTENSOR_NVRTC_PATH
if ! $CC -std=gnu11 -O1 -g -I. -Itests "$here/faults.c" "$here/scenario.c" $LIBRARY \
    -o "$work/faults" $LIBS; then
    fail "faults.c does not compile"
    finish
    exit
fi
of() { # TABLE: the functions of a table in src/3_cuda/driver/dvt_cuda_api.h
    sed -n "s/^    X(\($1[A-Za-z0-9_]*\),.*/\1/p" src/3_cuda/driver/dvt_cuda_api.h
}
every=
if [ -n "$FULL" ]; then
    script "driver" "$work/faults" $(of cu)
else
    every="--every 11"
    script "driver" "$work/faults" --short $every $(of cu)
    script "driver, copies in several chunks" "$work/faults" --step 2 $every $(of cu)
fi
# Without the disk cache, so that each program is compiled.
script "compiler" env DEVTENSOR_CACHE=0 "$work/faults" --steps 1 $every $(of nvrtc)
script "compiler for an unknown GPU" env DEVTENSOR_CACHE=0 SIMCUDA_CC=130 \
    "$work/faults" --steps 1 $every $(of nvrtcGetPTX)
finish
