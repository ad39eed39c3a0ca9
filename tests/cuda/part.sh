#!/bin/sh
# Runs one part of the suite of the CUDA backend. run.sh starts it, with the environment that makes
# gpu(0) a simulated GPU or this machine's.
# usage: part.sh NAME
. tests/lib.sh
part=$1
D=${CUDA_WORK:-$BUILD/cuda}
W=$D/parts/$part.work # output of the functions of lib.sh; parts run in parallel
mkdir -p "$W/build"
LIBRARY_BUILD=$BUILD
BUILD=$W

# needs_simulator: false, and counted as skipped, on a real GPU.
needs_simulator() {
    [ -n "$ON_GPU" ] || return 0
    skip "cuda/$part" "it tests the simulated driver"
    return 1
}
# Runs a directory's own script. Its BUILD is its own.
directory() {
    if [ -f "tests/cuda/$1/$1.sh" ]; then
        script "cuda/$1" env BUILD="$W/build" LIBRARY_BUILD="$LIBRARY_BUILD" sh \
            "tests/cuda/$1/$1.sh"
    else
        fail "cuda/$1" "tests/cuda/$1/$1.sh does not exist"
    fi
}

headers() {
    if ! has "${CXX%% *}"; then
        skip "cuda/headers" "$CXX is not installed"
    elif [ ! -f "$CUDA_HOME/include/nvrtc.h" ]; then
        skip "cuda/headers" "no nvrtc.h below $CUDA_HOME"
    else
        stub=
        for stub in "$CUDA_HOME"/lib64/stubs/libcuda.so "$CUDA_HOME"/lib/stubs/libcuda.so; do
            [ ! -f "$stub" ] || break
        done
        try "the prototypes are those of cuda.h and nvrtc.h" $CXX -std=c++17 -I. \
            -I"$CUDA_HOME/include" \
            tests/cuda/headers/headers.cpp -o "$W/headers" $LIBS
        [ "$failed" -ne 0 ] || script "cuda/headers" "$W/headers" "$stub"
    fi
}

cache() {
    try "cache_user.c compiles" $CC -std=gnu11 -O1 -I. -Itests tests/cuda/cache/cache_user.c \
        $LIBRARY -o "$W/cache_user" $LIBS
    [ "$failed" -ne 0 ] || script "cuda/cache" sh tests/cuda/cache/cache.sh "$W/cache_user"
}

compile() { # see run.sh there; by the toolkit's NVRTC, because the test double makes no CUBINs
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#"$SIM"}
    LD_LIBRARY_PATH=${LD_LIBRARY_PATH#:}
    [ -z "$SIMNVRTC_REAL" ] || export DEVTENSOR_NVRTC_PATH="$SIMNVRTC_REAL"
    set --
    [ -z "$DVT_TEST_FULL" ] || set -- --full
    script "cuda/compile" env BUILD="$W/build" sh tests/cuda/compile/run.sh "$@"
}

gpu() { # the tests of one file, against cpu()'s reference loops; a real GPU runs them in full
    export DEVTENSOR_ISA=reference
    [ -z "$ON_GPU" ] || export DVT_TEST_FULL=1
    [ "$1" != matmul_wgmma ] || export SIMCUDA_CC=90
    script "cuda/test_gpu_$1.c" "$LIBRARY_BUILD/cuda/tests" "test_gpu_$1.c"
    # A machine may have one GPU, which gpu(0) and gpu(1) then share.
    case ${ON_GPU:+$1} in
    all_reduce | copies | kernel | pinned)
        script "cuda/test_gpu_$1.c, two gpus" env DEVTENSOR_VIRTUAL_GPUS=2 \
            "$LIBRARY_BUILD/cuda/tests" "test_gpu_$1.c"
        ;;
    esac
    # Another order of warps that wait for each other: tiles of each kind, whose ring wraps around.
    [ -n "$ON_GPU" ] || [ "$1" != matmul_wgmma ] ||
        script "cuda/test_gpu_$1.c, in random order" env SIMCUDA_POLICY=random SIMCUDA_SEED=5 \
            "$LIBRARY_BUILD/cuda/tests" gpu_matmul_wgmma_every_layout gpu_matmul_wgmma_wide_tiles \
            gpu_matmul_wgmma_float32_errors
}

processors() { # those of a large GPU; the tests of wgmma need its compute capability too
    export SIMCUDA_SMS=132 DEVTENSOR_ISA=reference
    script "cuda/132 multiprocessors" "$LIBRARY_BUILD/cuda/tests"
    script "cuda/132 multiprocessors, wgmma" env SIMCUDA_CC=90 "$LIBRARY_BUILD/cuda/tests" \
        test_gpu_matmul_wgmma.c
}

units() { # the unit tests whose behavior depends on the kind of GPU
    set -- copies trainer autograd_device blocks_batch_norm views print random core_ arrays_ \
        conv2d_virtual unary_null_and_devices
    # In some of the others every allocation of a whole training fails: minutes on the simulator.
    [ -z "$ON_GPU$DVT_TEST_FULL" ] || set -- "$@" faults_virtual_gpus virtual
    script "cuda/unit tests" "$LIBRARY_BUILD/unit/tests" "$@"
}

more_gradients="test_gradients_points.c test_gradients_sums.c test_autograd.c"
more_gradients="$more_gradients test_autograd_orders.c"
more_blocks="test_blocks_own.c test_block_inputs.c test_nets.c test_half_statistics.c"
# Gradients and blocks compute on gpu(0), and are compared with cpu() in float64 or with the tests'
# expected values.
computed_on_gpu() { # FILE...
    script "cuda/$part" env DVT_TEST_GPU=1 "$LIBRARY_BUILD/unit/tests" "$@"
}

# Their output must be that on virtual GPUs. `make test` runs the first one, DVT_TEST_FULL=1 and a
# GPU all: the third multiplies a thousand matrices, and the fourth trains LeNet on thousands of
# images.
tutorials() {
    set -- "$LIBRARY_BUILD/examples/tutorials"
    some=
    if [ -z "$ON_GPU$DVT_TEST_FULL" ]; then
        set -- "$W/tutorials"
        some=1_gluon_use_gpu
        mkdir -p "$1"
        try "$some.c compiles" $CC -std=gnu11 -O1 -I. -D_GNU_SOURCE -DDEVTENSOR_IMPLEMENTED \
            examples/tutorials/$some.c $LIBRARY -o "$1/$some" $LIBS
    fi
    script "cuda/tutorials" env BUILD="$LIBRARY_BUILD" GPUS=2 TUTORIALS="$some" LOSSES=any \
        sh tests/tutorials/run.sh "$1"
}

case $part in
simcuda-*)
    # check/ tests the existing build; the driver's suite builds its own copies.
    simcuda=build/simcuda
    if [ $part = simcuda-driver ]; then simcuda=$simcuda/suite; fi
    mkdir -p $simcuda
    needs_simulator && script "cuda/$part" env BUILD=$simcuda sh \
        "tests/simcuda/${part#simcuda-}/run.sh"
    ;;
gpu-*) gpu "${part#gpu-}" ;;
headers | cache | compile | units) $part ;;
processors) needs_simulator && processors ;;
# What differs on a GPU are kernels, which other parts test. DVT_TEST_FULL=1 or a GPU runs the rest.
gradients) computed_on_gpu test_gradients.c test_gradients_conv.c \
    ${ON_GPU:+$more_gradients} ${DVT_TEST_FULL:+$more_gradients} ;;
blocks) computed_on_gpu test_blocks.c test_layers.c test_losses.c test_mixed.c \
    ${ON_GPU:+$more_blocks} ${DVT_TEST_FULL:+$more_blocks} ;;
tutorials) tutorials ;;
examples)
    programs="hello residual cplusplus"
    if [ -n "$ON_GPU" ]; then programs="$programs run"; fi
    script "cuda/$part" env BUILD="$LIBRARY_BUILD" GPUS=2 PROGRAMS="$programs" sh \
        "tests/$part/run.sh"
    ;;
orders | faults | drivers | exit | compiling | rehearsal | first | model)
    needs_simulator && directory "$part"
    ;;
*) fail "cuda/$part" "no such part" ;;
esac
# CPU time, because it does not depend on the load of the machine.
times >"$W/times"
tail -n 1 "$W/times" >"$D/parts/$part.times"
finish
