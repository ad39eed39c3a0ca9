#!/bin/sh
# Tests the simulated driver: its check programs with gcc (and clang: DVT_TEST_FULL=1), its exports
# against those of real drivers, and the table of versions against the toolkit's. Environment:
# BUILD, CC, CUDA_HOME.
. tests/lib.sh
: "${BUILD:=build/simcuda}" "${CC:=cc}" "${CUDA_HOME:=/usr/local/cuda}"
O=$BUILD/driver
S=tests/simcuda/driver
export CUDA_HOME
mkdir -p "$O"
if [ ! -f "$CUDA_HOME/include/cuda.h" ]; then
    skip "the simulated driver" "no cuda.h below $CUDA_HOME"
    finish
    exit
fi

builds() { # compiler, directory
    make -s -f tests/simcuda/Makefile CC="$1" O="$2" everything driver
}
checks() { # directory
    SIM_CHECK_KERNELS=$1/check/driver/kernels.so
    export SIM_CHECK_KERNELS
    for program in correct planted streams memory graphs launches personalities; do
        script "driver: $program" env LD_LIBRARY_PATH="$1/lib" "$1/check/driver/$program"
    done
    script "driver: compiled" env LD_LIBRARY_PATH="$1/lib" SIMCUDA_CACHE="$1/cache" \
        "$1/check/driver/compiled"
    script "driver: counts" env LD_LIBRARY_PATH="$1/lib" SIMCUDA_CACHE="$1/cache" \
        "$1/check/driver/counts"
    script "driver: old exports" env LD_LIBRARY_PATH="$1/lib-11040" SIMCUDA_DRIVER=11040 \
        "$1/check/driver/personalities" old
}
exported() { # library
    nm -D --defined-only "$1" | awk '{ print $3 }' | grep '^cu' | sort
}

try "the driver builds" builds "$CC" "$O/cc"
checks "$O/cc"
if [ -n "$DVT_TEST_FULL" ] && has clang && ! "$CC" --version 2>/dev/null | grep -q clang; then
    try "the driver builds with clang" builds clang "$O/clang"
    checks "$O/clang"
fi

stub=$CUDA_HOME/lib64/stubs/libcuda.so
if [ -f "$stub" ] && has nm; then
    exported "$stub" >"$O/real.txt"
    exported "$O/cc/lib/libcuda.so.1" >"$O/ours.txt"
    unreal=$(comm -23 "$O/ours.txt" "$O/real.txt" | tr '\n' ' ')
    if [ -s "$O/ours.txt" ] && [ -z "$unreal" ]; then
        pass
    else
        fail "exports" "no real driver has: $unreal"
    fi
    # Each export can be looked up, or is one of the old forms that trap.
    sed -n 's/^SYMBOL([^,]*, \([^,]*\),.*/\1/p; s/^OLD(\(.*\))$/\1/p' $S/symbols.def $S/old_abi.c |
        sort -u >"$O/known.txt"
    unknown=$(comm -3 "$O/ours.txt" "$O/known.txt" | tr '\n' ' ')
    if [ -z "$unknown" ]; then
        pass
    else
        fail "symbols.def" "differs from the exports: $unknown"
    fi
else
    skip "exports" "no stub library in the toolkit, or no nm"
fi

# Every (name, version) of the table must be in the toolkit's list of function types.
if [ -f "$CUDA_HOME/include/cudaTypedefs.h" ]; then
    sed -n 's/.*PFN_\(cu[A-Za-z0-9]*\(_v2\)\{0,1\}\)_v\([0-9]*\))(.*/\1 \3/p' \
        "$CUDA_HOME/include/cudaTypedefs.h" | sort -u >"$O/types.txt"
    # Renamed by cuda.h, of another header, or without a type of its own.
    sed -n 's/^SYMBOL(\([^,]*\), [^,]*, \([0-9]*\))$/\1 \2/p' $S/symbols.def |
        grep -v -e '^cuGraphInstantiate 12000$' -e '^cuProfilerSt' | sort -u >"$O/table.txt"
    wrong=$(comm -23 "$O/table.txt" "$O/types.txt" | tr '\n' ';')
    if [ -s "$O/types.txt" ] && [ -z "$wrong" ]; then
        pass
    else
        fail "versions in symbols.def" "$wrong"
    fi
else
    skip "versions in symbols.def" "no cudaTypedefs.h"
fi
finish
