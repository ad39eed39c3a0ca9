#!/bin/sh
# Runs compiling.c on the driver that does nothing and a double of NVRTC that waits. A GPU that is
# locked during a compilation would never be free: the program would not end. With a double that
# does not wait, programs.c counts the programs of LeNet's first step. Then runs order.c on the
# simulated driver: what is queued during a compilation must not hide the kernel from waits.
# Environment: BUILD, LIBRARY_BUILD, CC, LIBRARY, LIBS, SIM (the directory of the simulated driver).
. tests/lib.sh
: "${CC:=cc}" "${LIBS:=-lm -ldl -lpthread}" "${LIBRARY:=$LIBRARY_BUILD/devtensor.o}" \
    "${SIM:=build/simcuda/lib}"
work=$BUILD
mkdir -p "$work"
try "the driver that does nothing compiles" $CC -O1 -w -shared -fPIC bench/gpu/null_driver.c \
    -o "$work/libcuda.so.1"
try "waiting_nvrtc.c compiles" $CC -std=gnu11 -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
    -shared -fPIC tests/cuda/compiling/waiting_nvrtc.c -o "$work/libnvrtc.so" $LIBS
try "compiling.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/compiling.c $LIBRARY \
    -o "$work/compiling" $LIBS
try "programs.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/programs.c $LIBRARY \
    -o "$work/programs" $LIBS
without_gpu() { # NAME PROGRAM
    said=$(env DEVTENSOR_CUDA_PATH="$PWD/$work/libcuda.so.1" DEVTENSOR_CACHE=0 \
        DEVTENSOR_NVRTC_PATH="$PWD/$work/libnvrtc.so" timeout 120 "$work/$2" 2>&1)
    code=$?
    if [ "$code-$said" = 0-ok ]; then pass; else fail "$1" "exit code $code: $said"; fi
}
without_gpu "compiling while others use the GPU" compiling
without_gpu "the programs of LeNet's first step" programs

# ---- the order of work that is queued after a compilation ----
if [ ! -f "$SIM/libcuda.so.1" ]; then
    skip "the order after a compilation" "no simulated driver in $SIM"
    finish
    exit
fi
mkdir -p "$work/modules"
try "pausing_nvrtc.c compiles" $CC -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC \
    tests/cuda/compiling/pausing_nvrtc.c -o "$work/libpausing.so" $LIBS
try "order.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/order.c $LIBRARY \
    -o "$work/order" $LIBS
said=$(env LD_LIBRARY_PATH="$SIM" SIMCUDA_POLICY=lazy SIMCUDA_DEVICES=2 \
    SIMCUDA_CACHE="$PWD/$work/modules" DEVTENSOR_CACHE=0 PAUSING_NVRTC_REAL=libnvrtc.so.12 \
    DEVTENSOR_NVRTC_PATH="$PWD/$work/libpausing.so" timeout 300 "$work/order" \
    "$work/trace.json" 2>&1)
code=$?
if [ "$code-$said" = 0-ok ]; then pass; else
    fail "the order of work after a compilation" "exit code $code: $said"
fi
finish
