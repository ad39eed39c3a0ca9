#!/bin/sh
# Trains with several processes, under Open MPI and MPICH. The library is compiled once for each,
# without optimization and SIMD kernels, which are not tested here. NCCL runs on the simulated
# driver where it can be built. DVT_TEST_FULL=1 (`make test-long`) runs more cases on GPUs.
# Environment: BUILD, LIBS, CC, MAKE, CUDA_HOME.
. tests/lib.sh
: "${CC:=cc}" "${MAKE:=make}" "${CUDA_HOME:=/usr/local/cuda}"
D=$BUILD/mpi
rm -rf "$D"
mkdir -p "$D"
# Open MPI refuses root, as in containers, and spins on busy processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export DEVTENSOR_NUM_THREADS=1 DEVTENSOR_RANK_TIMEOUT=30 DEVTENSOR_CUDA=0 CONTEXTS=1
export OMPI_CC="$(quick_cc)" MPICH_CC="$(quick_cc)" # compilers behind mpicc
LIMIT=180 # seconds of a run
gave_up="dvt_backward: an exchange of rank 1 failed earlier"
# Launchers ask the name of this host, which a sandbox may not resolve.
export HYDRA_IFACE="${HYDRA_IFACE:-lo}" OMPI_MCA_btl_tcp_if_include=lo

ranks() { # processes, mode, file
    n=$1
    shift
    case $mpi in
    openmpi) timeout $LIMIT mpirun.openmpi --oversubscribe -np "$n" "$D/$mpi" "$@" ;;
    mpich) timeout $LIMIT mpirun.mpich -np "$n" "$D/$mpi" "$@" ;;
    esac
}
# same NAME EXPECTED COMMAND...: the command prints this line.
same() {
    name=$mpi.$1
    expected=$2
    shift 2
    doing "$name"
    got=$("$@" 2>"$D/log") && [ -n "$got" ] && [ "$got" = "$expected" ] && pass && return
    fail "$name" "printed '$got', expected '$expected': $(tail -n 3 "$D/log")"
}
# says NAME TEXT COMMAND...: the command fails, and its output contains the text.
says() {
    name=$mpi.$1
    text=$2
    shift 2
    doing "$name"
    if "$@" >"$D/log" 2>&1; then
        fail "$name" "it succeeded"
    elif grep -q "$text" "$D/log"; then
        pass
    else
        fail "$name" "no '$text' in: $(tail -n 5 "$D/log")"
    fi
}

info() (
    export DEVTENSOR_LOG=info
    "$@"
)

# ---- simulated GPUs ----
SIM=$PWD/build/simcuda # that of tests/cuda/run.sh
no_gpus=
if [ ! -f "$CUDA_HOME/include/cuda.h" ]; then
    no_gpus="no cuda.h below $CUDA_HOME"
elif ! ls "$CUDA_HOME"/lib*/libnvrtc.so* "$CUDA_HOME"/targets/*/lib/libnvrtc.so* \
    "${SIMNVRTC_REAL:-/}" 2>/dev/null | grep -q libnvrtc; then
    no_gpus="no NVRTC below $CUDA_HOME"
elif ! MAKEFLAGS= "$MAKE" -s -f tests/simcuda/Makefile O=build/simcuda CC="$CC" \
    CUDA_HOME="$CUDA_HOME" all >"$D/simcuda.log" 2>&1; then
    no_gpus="the simulated driver was not built: $(tail -n 3 "$D/simcuda.log")"
fi
gpus() ( # processes, mode, contexts, modes of overlap.h
    export DEVTENSOR_CUDA=1 DEVTENSOR_NCCL=1 SIMCUDA_DEVICES=4 SIMCUDA_CACHE="$SIM/cache" \
        DEVTENSOR_CACHE_DIR="$SIM/kernels" LD_LIBRARY_PATH="$SIM/lib"
    ranks "$@"
)
stops() ( # number of the sum before which rank 1 stops, processes, mode, contexts
    export SIMNCCL_STOPS=1 SIMNCCL_STOPS_BEFORE="$1" SIMNCCL_SECONDS=1 DEVTENSOR_RANK_TIMEOUT=2
    shift
    gpus "$@"
)
hangs() (
    export SIMNCCL_HANGS=1
    stops "$@"
)
pageable() (
    export SIMCUDA_FAIL=cuMemHostAlloc@0=2
    gpus "$@"
)
gpu_cases() {
    mkdir -p "$SIM/kernels"
    chmod 700 "$SIM/kernels" # the kernel cache must be accessible only to its owner
    for n in 1 2 $more; do
        modes=a
        [ $n != 2 ] || modes=ag
        try "$mpi.overlap.gpu.$n" gpus $n overlap gpu $modes
        try "$mpi.overlap.nccl.$n" gpus $n overlap nccl $modes
    done
    says dies.gpu "[Kk]illed" gpus 2 dies_late gpu
    [ $mpi = openmpi ] || return # the rest does not depend on MPI
    for how in own two shared missing; do
        try "$mpi.gpus.$how" gpus 2 gpus $how
    done
    try "$mpi.overlap.gpu" gpus 2 overlap gpu bcdfhjk
    try "$mpi.overlap.gpu.pageable" pageable 2 overlap gpu a
    try "$mpi.overlap.nccl" gpus 2 overlap nccl cdj
    try "$mpi.overlap.gpus" gpus 2 overlap gpus al
    try "$mpi.overlap.nccl2" gpus 2 overlap nccl2 a
    try "$mpi.trainers.nccl" gpus 2 trainers nccl oe
    if [ -n "${DVT_TEST_FULL:-}" ]; then
        LIMIT=300
        try "$mpi.trainers.gpu" gpus 2 trainers gpu oecmlw
        try "$mpi.trainers.gpus" gpus 2 trainers gpus oecm
        try "$mpi.trainers.nccl.2" gpus 2 trainers nccl cmlw
        try "$mpi.trainers.nccl.4" gpus 4 trainers nccl oecm
        LIMIT=180
    fi
    says broken.nccl "a later pass fails: $gave_up (.* cuEventRecord" gpus 2 broken nccl
    says dies.gpu.early "[Kk]illed" gpus 2 dies_early gpu
    says gpus.lost "has waited 2 s for rank 1" stops 2 2 gpus own
    says gpus.lost.early "has waited 2 s for rank 1" stops 18 2 trains nccl # in backward
    says gpus.hangs "has waited 2 s for rank 1" hangs 2 2 gpus own
}

for mpi in openmpi mpich; do
    if ! has mpicc.$mpi || ! has mpirun.$mpi; then
        skip mpi.$mpi "no mpicc.$mpi or mpirun.$mpi here"
        continue
    fi
    try "$mpi.compile" mpicc.$mpi -std=gnu11 -O0 -w -DDEVTENSOR_IMPLEMENTATION -DDEVTENSOR_MPI \
        -DDEVTENSOR_NO_SIMD -I. tests/mpi/train.c -o "$D/$mpi" $LIBS
    [ -x "$D/$mpi" ] || continue
    # MPICH's waiting processes spin, so more processes than processors take long there.
    odd=3 more=4
    [ $mpi = openmpi ] || [ -n "${DVT_TEST_FULL:-}" ] || odd= more=
    for n in 1 2 $more; do
        try "$mpi.arrays.$n" ranks $n arrays
    done
    one=$(ranks 1 parts 2>"$D/log")
    for n in 2 $odd $more; do
        same parts.$n "$one" ranks $n parts
    done
    CONTEXTS=2
    same parts.contexts "$one" ranks 2 parts
    CONTEXTS=1
    plain=$(ranks 1 plain 2>"$D/log")
    for n in 2 $more; do
        same plain.$n "$plain" ranks $n plain
    done
    whole=$(ranks 1 whole 2>"$D/log")
    same whole.2 "$whole" ranks 2 whole
    try "$mpi.save" ranks 4 save "$D/$mpi.safetensors"
    for n in 1 2 $odd; do
        same resume.$n "$whole" ranks $n resume "$D/$mpi.safetensors"
    done
    n=4
    modes=abcdeghkl cases=oecmlwt
    [ $mpi = openmpi ] || n=2 modes=al cases=o
    try "$mpi.overlap.$n" ranks $n overlap
    [ $mpi = mpich ] || try "$mpi.overlap.virtual" ranks 2 overlap virtual acg
    try "$mpi.overlap.contexts" ranks 2 overlap mixed $modes
    try "$mpi.trainers.$n" ranks $n trainers cpu $cases
    [ $mpi = mpich ] || try "$mpi.trainers.1" ranks 1 trainers cpu oe
    [ $mpi = mpich ] || try "$mpi.trainers.virtual" ranks 2 trainers virtual er
    [ $mpi = mpich ] || try "$mpi.trainers.contexts" ranks 2 trainers mixed cr
    [ $mpi = mpich ] ||
        says swapped "rank 1 is at trainer 4 (first parameter: dense12_weight), and rank 0 at" \
            ranks 2 swapped
    [ $mpi = mpich ] || try "$mpi.again" ranks 3 again
    [ $mpi = mpich ] || says broken "a later pass fails: $gave_up (.* memory" ranks 2 broken
    says dies "[Kk]illed" info ranks 3 dies
    # Open MPI's launcher names the rank, MPICH's a process, at times one that it has ended itself.
    died="process rank 1 .*Killed"
    pid=$(sed -n 's/.* PID \([0-9]*\) .*/\1/p' "$D/log")
    [ $mpi = openmpi ] || died="rank . of 3 is process $pid\$"
    doing "$mpi.dies.who"
    if grep -q "$died" "$D/log"; then pass; else fail "$mpi.dies.who" "no '$died' in its output"; fi
    says dies.early "[Kk]illed" ranks 3 dies_early
    says leaves "rank 1 exits without dvt_distributed_end" ranks 3 leaves
    says differs "rank 1 sent 4 bytes, and rank 0 expects 80" ranks 2 differs
    DEVTENSOR_RANK_TIMEOUT=2
    says stops "has waited 2 s for rank 1" ranks 2 stops
    DEVTENSOR_RANK_TIMEOUT=30
    [ -n "$no_gpus" ] || gpu_cases
done
[ -z "$no_gpus" ] || skip mpi.gpus "$no_gpus"
finish
