#!/bin/sh
# Runs compiling.c on the driver that does nothing and a double of NVRTC that waits. A GPU that is
# locked during a compilation would never be free: the program would not end.
# Environment: BUILD, LIBRARY_BUILD, CC, LIBRARY, LIBS.
. tests/lib.sh
: "${CC:=cc}" "${LIBS:=-lm -ldl -lpthread}" "${LIBRARY:=$LIBRARY_BUILD/devtensor.o}"
work=$BUILD
mkdir -p "$work"
try "the driver that does nothing compiles" $CC -O1 -w -shared -fPIC bench/gpu/null_driver.c \
    -o "$work/libcuda.so.1"
try "waiting_nvrtc.c compiles" $CC -std=gnu11 -O1 -Wall -Wextra -Wno-unused-parameter -Werror \
    -shared -fPIC tests/cuda/compiling/waiting_nvrtc.c -o "$work/libnvrtc.so" $LIBS
try "compiling.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/compiling.c $LIBRARY \
    -o "$work/compiling" $LIBS
said=$(env DEVTENSOR_CUDA_PATH="$PWD/$work/libcuda.so.1" DEVTENSOR_CACHE=0 \
    DEVTENSOR_NVRTC_PATH="$PWD/$work/libnvrtc.so" timeout 120 "$work/compiling" 2>&1)
code=$?
if [ "$code-$said" = 0-ok ]; then pass; else
    fail "compiling while others use the GPU" "exit code $code: $said"
fi
finish
