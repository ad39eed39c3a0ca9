#!/bin/sh
# Runs programs that end with live arrays, pending work and running threads. They must print nothing
# and return the exit code that they chose. Each runs several times in lazy and random orders.
# Environment: BUILD, CXX, LIBRARY, SIM (the directory of the simulated driver).
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${CXX:=c++}" "${LIBRARY:=$BUILD/devtensor.o}" \
    "${SIM:=build/simcuda/lib}" "${LIBS:=-lm -ldl -lpthread}"
if [ ! -f "$SIM/libcuda.so.1" ]; then skip "leaving" "no simulated driver in $SIM"; finish; exit; fi
has "$CXX" || { skip "leaving" "no C++ compiler"; finish; exit; }
work=$BUILD/cuda-exit
mkdir -p "$work"
mkdir -p -m 700 "${DEVTENSOR_CACHE_DIR:=$work/kernels}" "${SIMCUDA_CACHE:=$work/modules}"
export DEVTENSOR_CACHE_DIR SIMCUDA_CACHE SIMCUDA_MEM=256M SIMCUDA_ARENA=1G
unset DEVTENSOR_CACHE DEVTENSOR_VIRTUAL_GPUS DEVTENSOR_CUDA DEVTENSOR_P2P DEVTENSOR_SYNC \
    DEVTENSOR_NVRTC_PATH
try "leaves.cpp compiles" $CXX -std=gnu++17 -O1 -g -I. -Itests "$here/leaves.cpp" $LIBRARY \
    -o "$work/leaves" $LIBS

# leaves HOW POLICY SEED
leaves() {
    env LD_LIBRARY_PATH="$SIM" SIMCUDA_POLICY="$2" SIMCUDA_SEED="$3" timeout 60 "$work/leaves" \
        "$1" >"$work/said" 2>&1
    code=$?
    if [ $code -eq 0 ] && [ ! -s "$work/said" ]; then pass; else
        fail "$1, $2 order, seed $3" "exit code $code: $(head -n 4 "$work/said")"
    fi
}
for how in pending scopes atexit-first atexit-last static-early static-late both-statics network \
    exit-in-a-thread quick threads threads-and-statics; do
    leaves $how lazy 1
    for seed in 1 2 3; do leaves $how random $seed; done
done
finish
