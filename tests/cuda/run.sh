#!/bin/sh
# Tests the CUDA backend without a GPU: runs the parts of part.sh on the simulated driver
# (tests/simcuda), as many in parallel as there are processors. Compiled modules are cached below
# build/, so a second run is many times faster. ON_GPU=1 runs the parts on the GPU of this machine
# instead. DVT_TEST_FULL=1: all dtypes and operations instead of a selection.
# usage: run.sh [PART...]   Environment: BUILD, CC, CXX, LIBRARY, LIBS, MAKE, as the Makefile sets
# them; CUDA_HOME.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${CXX:=c++}" "${MAKE:=make}" \
    "${LIBS:=-lm -ldl -lpthread}" "${CUDA_HOME:=/usr/local/cuda}"
: "${LIBRARY:=$BUILD/devtensor.o}"
O=build/simcuda # whatever the configuration
SIM=$PWD/$O/lib
D=${CUDA_WORK:-$BUILD/cuda}
. tests/cuda/parts.sh

# ---- requirements ----
missing() { # prints what is missing
    case $(uname -s)-$(uname -m) in
    Linux-x86_64 | Linux-aarch64) ;;
    *)
        echo "device code is simulated on Linux, x86-64 or aarch64"
        return
        ;;
    esac
    has "${CC%% *}" || echo "no compiler $CC"
    module_cc=${SIMNVRTC_CC:-cc}
    has "${module_cc%% *}" ||
        echo "no compiler $module_cc for device code; SIMNVRTC_CC names another"
    [ -f "$CUDA_HOME/include/cuda.h" ] ||
        echo "no cuda.h below $CUDA_HOME; CUDA_HOME says where the toolkit is"
    for nvrtc in "$SIMNVRTC_REAL" "$CUDA_HOME"/lib64/libnvrtc.so* "$CUDA_HOME"/lib/libnvrtc.so* \
        "$CUDA_HOME"/targets/*/lib/libnvrtc.so*; do
        [ ! -f "$nvrtc" ] || return
    done
    echo "no NVRTC below $CUDA_HOME; SIMNVRTC_REAL names one"
}
if [ -z "$ON_GPU" ]; then
    reason=$(missing | head -n 1)
    if [ -n "$reason" ]; then
        skip "the CUDA backend" "$reason"
        finish
        exit
    fi
fi

# ---- shared by all parts ----
umask 077
mkdir -p "$D/parts" "$O/kernels"
chmod 700 "$O/kernels" # the kernel cache must be accessible only to its owner
unset DEVTENSOR_CUDA DEVTENSOR_VIRTUAL_GPUS DEVTENSOR_CACHE DEVTENSOR_P2P DEVTENSOR_SYNC \
    DEVTENSOR_TF32 DEVTENSOR_TF32X3
if [ -z "$ON_GPU" ]; then
    if ! MAKEFLAGS= "$MAKE" -s -j2 -f tests/simcuda/Makefile O=$O CC="$CC" CUDA_HOME="$CUDA_HOME" \
        all >"$D/simcuda.log" 2>&1; then
        tail -n 25 "$D/simcuda.log"
        fail "the simulated driver" "the build failed"
        finish
        exit 1
    fi
    unset DEVTENSOR_CUDA_PATH DEVTENSOR_NVRTC_PATH
    LD_LIBRARY_PATH=$SIM${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    SIMCUDA_CACHE=$PWD/$O/cache
    DEVTENSOR_CACHE_DIR=$PWD/$O/kernels
    export LD_LIBRARY_PATH SIMCUDA_CACHE DEVTENSOR_CACHE_DIR
fi
[ -z "$DVT_TEST_FULL" ] || FULL=1
CUDA_WORK=$D
export CUDA_WORK SIM BUILD CC CXX LIBRARY LIBS MAKE CUDA_HOME ON_GPU FULL DVT_TEST_FULL

# ---- the parts, in parallel; each writes its log ----
[ $# -gt 0 ] || set -- $CUDA_PARTS
JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
for part in "$@"; do rm -f "$D/parts/$part.log" "$D/parts/$part.times"; done
for part in "$@"; do echo "$part"; done |
    xargs -n 1 -P "$JOBS" sh -c '[ -z "${DVT_DOING:-}" ] || echo "cuda/$1" >"$DVT_DOING"
        sh tests/cuda/part.sh "$1" >"$0/parts/$1.log" 2>&1
        echo "   cuda/$1: $(tail -n 1 "$0/parts/$1.log")"' "$D"
for part in "$@"; do
    echo "-- cuda/$part ($(cat "$D/parts/$part.times" 2>/dev/null) of CPU time)"
    script "cuda/$part" cat "$D/parts/$part.log"
done
finish
