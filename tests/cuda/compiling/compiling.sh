#!/bin/sh
# Runs compiling.c on the driver that does nothing and a double of NVRTC that waits. A GPU that is
# locked during a compilation would never be free: the program would not end. With a double that
# does not wait, programs.c counts the programs of LeNet's first step. Then runs order.c on the
# simulated driver: what is queued during a compilation must not hide the kernel from waits.
# product.c runs there with NVRTC 11 and without NVRTC, which have no wgmma, and planning.c while
# another thread compiles.
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

# ---- products of compute capability 9.0 with other NVRTCs, and with a cache ----
try "NVRTC 11 compiles" $CC -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC -DMAJOR=11 \
    tests/cuda/compiling/pausing_nvrtc.c -o "$work/libnvrtc11.so" $LIBS
try "noticed_nvrtc.c compiles" $CC -std=gnu11 -O1 -Wall -Wextra -Werror -shared -fPIC \
    tests/cuda/compiling/noticed_nvrtc.c -o "$work/libnoticed.so"
try "planning.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/planning.c $LIBRARY \
    -o "$work/planning" $LIBS
try "product.c compiles" $CC -std=gnu11 -O1 -I. tests/cuda/compiling/product.c $LIBRARY \
    -o "$work/product" $LIBS
rm -rf "$work/wgmma" "$work/mma" "$work/none" "$work/sources"
mkdir -p "$work/sources"
# With neither a cache nor NVRTC there is no gpu(0).
(umask 077 && mkdir -p "$work/none/00")
on_hopper() { # CACHE NVRTC PROGRAM: with the environment of a GPU of compute capability 9.0
    (umask 077 && env LD_LIBRARY_PATH="$SIM" SIMCUDA_CC=90 \
        SIMCUDA_CACHE="$PWD/$work/modules" DEVTENSOR_CACHE=1 \
        DEVTENSOR_CACHE_DIR="$PWD/$work/$1" DEVTENSOR_NVRTC_PATH="$2" \
        DEVTENSOR_JIT_DUMP="$PWD/$work/sources" PAUSING_NVRTC_REAL=libnvrtc.so.12 \
        timeout 300 "$work/$3" 2>&1)
}
product() { # NAME, CACHE, NVRTC, what is said
    said=$(on_hopper "$2" "$3" product)
    if [ "$said" = "$4" ]; then pass; else fail "$1" "said '$said', expected '$4'"; fi
}
# As product, where the driver refuses the first N images (CUDA_ERROR_NO_BINARY_FOR_GPU).
refused() { # N, the arguments of product
    SIMCUDA_FAIL=cuModuleLoadDataEx@1=209
    [ "$1" = 1 ] || SIMCUDA_FAIL=$SIMCUDA_FAIL,cuModuleLoadDataEx@2=209
    export SIMCUDA_FAIL
    shift
    product "$@"
    unset SIMCUDA_FAIL
}
compiled() { # NAME, PATTERN: the one source that was compiled since the last call has it
    if [ "$(cat "$work"/sources/*.cu | grep -c "$2")" -gt 0 ] &&
        [ "$(ls "$work/sources" | wc -l)" = 1 ]; then pass; else
        fail "$1" "compiled $(ls "$work/sources")"
    fi
    rm -f "$work"/sources/*
}
product "a product by wgmma" wgmma libnvrtc.so.12 "compiled 1, from disk 0"
compiled "a product by wgmma" wgmma.mma_async
product "a full cache: NVRTC is not opened" wgmma "$PWD/$work/libnoticed.so" \
    "compiled 0, from disk 1"
product "an opened NVRTC is noticed" none "$PWD/$work/libnoticed.so" \
    "NVRTC was opened
DVT_ERR_NO_COMPILER"
product "a product with NVRTC 11" mma "$PWD/$work/libnvrtc11.so" "compiled 1, from disk 0"
compiled "a product with NVRTC 11" mma.sync
product "wgmma of the cache with NVRTC 11" wgmma "$PWD/$work/libnvrtc11.so" \
    "compiled 0, from disk 1"
product "mma.sync of the cache without NVRTC" mma /nowhere "compiled 0, from disk 1"
product "a cache without the program, and no NVRTC" none /nowhere DVT_ERR_NO_COMPILER

# ---- products while another thread compiles ----
planning() { # NAME, CACHE
    said=$(on_hopper "$2" "$PWD/$work/libnvrtc11.so" planning)
    if [ "$said" = ok ]; then pass; else fail "$1" "said '$said', expected 'ok'"; fi
    rm -f "$work"/sources/*
}
planning "a cached product of wgmma during a compilation" wgmma
planning "a cached product of mma.sync during a compilation" mma

# ---- the driver refuses the image of wgmma ----
rm -rf "$work/refused" "$work/both"
(umask 077 && cp -R "$work/wgmma" "$work/refused" && cp -R "$work/wgmma" "$work/both" &&
    cp -R "$work"/mma/* "$work/both")
refused 1 "refused wgmma with NVRTC 11" refused "$PWD/$work/libnvrtc11.so" \
    "compiled 1, from disk 1"
compiled "refused wgmma with NVRTC 11" mma.sync
refused 1 "refused wgmma without NVRTC, mma.sync in the cache" both /nowhere \
    "compiled 0, from disk 2"
product "refused wgmma is kept without NVRTC 12" both /nowhere "compiled 0, from disk 1"
refused 1 "refused wgmma without NVRTC" wgmma /nowhere DVT_ERR_NO_COMPILER
rm -f "$work"/sources/*
refused 2 "refused wgmma with NVRTC 12" wgmma libnvrtc.so.12 "compiled 1, from disk 2"
compiled "refused wgmma with NVRTC 12" wgmma.mma_async
finish
