#!/bin/sh
# Trains with several processes, under Open MPI and MPICH. The library is compiled once for each,
# without optimization and kernels, which are not tested here. Environment: BUILD, LIBS.
. tests/lib.sh
D=$BUILD/mpi
rm -rf "$D"
mkdir -p "$D"
# Open MPI refuses root, as in containers, and spins on busy processors.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export DEVTENSOR_NUM_THREADS=1 DEVTENSOR_RANK_TIMEOUT=30 CONTEXTS=1
# Launchers ask the name of this host, which a sandbox may not resolve.
export HYDRA_IFACE="${HYDRA_IFACE:-lo}" OMPI_MCA_btl_tcp_if_include=lo

ranks() { # processes, mode, file
    n=$1
    shift
    case $mpi in
    openmpi) timeout 60 mpirun.openmpi --oversubscribe -np "$n" "$D/$mpi" "$@" ;;
    mpich) timeout 60 mpirun.mpich -np "$n" "$D/$mpi" "$@" ;;
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

for mpi in openmpi mpich; do
    if ! has mpicc.$mpi || ! has mpirun.$mpi; then
        skip mpi.$mpi "no mpicc.$mpi or mpirun.$mpi here"
        continue
    fi
    try "$mpi.compile" mpicc.$mpi -std=gnu11 -O0 -w -DDEVTENSOR_IMPLEMENTATION -DDEVTENSOR_MPI \
        -DDEVTENSOR_NO_CUDA -DDEVTENSOR_NO_SIMD -I. tests/mpi/train.c -o "$D/$mpi" $LIBS
    [ -x "$D/$mpi" ] || continue
    for n in 1 2 4; do
        try "$mpi.arrays.$n" ranks $n arrays
    done
    one=$(ranks 1 parts 2>"$D/log")
    for n in 2 3 4; do
        same parts.$n "$one" ranks $n parts
    done
    CONTEXTS=2
    same parts.contexts "$one" ranks 2 parts
    CONTEXTS=1
    plain=$(ranks 1 plain 2>"$D/log")
    for n in 2 4; do
        same plain.$n "$plain" ranks $n plain
    done
    whole=$(ranks 1 whole 2>"$D/log")
    same whole.2 "$whole" ranks 2 whole
    try "$mpi.save" ranks 4 save "$D/$mpi.safetensors"
    for n in 1 2 3; do
        same resume.$n "$whole" ranks $n resume "$D/$mpi.safetensors"
    done
    says dies "[Kk]illed" ranks 3 dies
    says leaves "rank 1 exits without dvt_distributed_end" ranks 3 leaves
    says differs "rank 1 sent 4 bytes, and rank 0 expects 80" ranks 2 differs
    DEVTENSOR_RANK_TIMEOUT=2
    says stops "has waited 2 s for rank 1" ranks 2 stops
    DEVTENSOR_RANK_TIMEOUT=30
done
finish
