#!/bin/sh
# Tests drivers and compilers that are absent, broken, old, new, mixed, or that report false
# capabilities. In each case cpu() works, and the error says what is wrong and what to do.
# Environment: BUILD, CC, SIM (the directory of the simulated driver), CUDA_HOME.
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${CC:=cc}" "${SIM:=build/simcuda/lib}" "${CUDA_HOME:=/usr/local/cuda}" \
    "${LIBS:=-lm -ldl -lpthread}"
if [ ! -f "$SIM/libcuda.so.1" ]; then skip "drivers" "no simulated driver in $SIM"; finish; exit; fi
work=$BUILD/cuda-drivers
rm -rf "$work/places"
mkdir -p "$work/places/driver-only" "$work/places/stub" "$work/places/bare"
mkdir -p -m 700 "${DEVTENSOR_CACHE_DIR:=$work/kernels}" "${SIMCUDA_CACHE:=$work/modules}"
SIM=$(cd "$SIM" && pwd)
SIMNVRTC_REAL=${SIMNVRTC_REAL:-$CUDA_HOME/lib64/libnvrtc.so}
export DEVTENSOR_CACHE_DIR SIMCUDA_CACHE SIMNVRTC_REAL SIMCUDA_MEM=256M SIMCUDA_ARENA=1G
unset DEVTENSOR_CACHE DEVTENSOR_VIRTUAL_GPUS DEVTENSOR_CUDA DEVTENSOR_P2P DEVTENSOR_NVRTC_PATH \
    DEVTENSOR_CUDA_PATH
unset CUDA_HOME CUDA_PATH VIRTUAL_ENV CONDA_PREFIX LD_LIBRARY_PATH

# Hides the default locations of this machine's own toolkit and driver, so that a test that removes
# a library does not find that one.
sed -e 's|"/usr/local/cuda/lib64"|"/nowhere/cuda"|' \
    -e 's|"/usr/lib/[^"]*/libcuda.so.1"|"/nowhere/libcuda.so.1"|g' \
    -e 's|"/run/opengl-driver/lib/libcuda.so.1"|"/nowhere/libcuda.so.1"|' devtensor.h \
    >"$work/devtensor.h"
printf '#define DEVTENSOR_IMPLEMENTATION\n#include "devtensor.h"\n' >"$work/library.c"
if [ ! "$work/library.o" -nt devtensor.h ]; then
    try "the library compiles" $(quick_cc) -std=gnu11 -O0 -g -DDEVTENSOR_NO_SIMD \
        -I"$work" -c "$work/library.c" \
        -o "$work/library.o"
fi
try "driver_state.c compiles" $CC -std=gnu11 -O1 -g -I"$work" -Itests "$here/driver_state.c" \
    "$work/library.o" -o "$work/driver_state" $LIBS

# meets NAME DIRECTORY [VARIABLE=VALUE...] -- PATTERN...: runs the program with the libraries of
# this directory. Its output must match all patterns (grep -E). Without a GPU, cpu() and dvt_try_gpu
# work.
meets() {
    name=$1
    folder=$2
    shift 2
    set_=
    while [ "$1" != -- ]; do
        set_="$set_ $1"
        shift
    done
    shift
    env LD_LIBRARY_PATH="$folder" HOME=/nowhere $set_ timeout 100 "$work/driver_state" \
        >"$work/said" 2>"$work/err"
    code=$?
    missing=
    [ $code -eq 0 ] || missing="exit code 0, not $code;"
    [ -s "$work/err" ] && missing="$missing silence on stderr, not $(head -c 200 "$work/err");"
    for pattern in '^the sum on cpu\(0\) gives 6$' "$@"; do
        grep -qE "$pattern" "$work/said" || missing="$missing $pattern;"
    done
    if grep -q '^0 gpus$' "$work/said"; then
        grep -qE '^asked for gpu\(0\): DVT_ERR_NO_DEVICE: .*use dvt_try_gpu' "$work/said" ||
            missing="$missing an error for gpu(0)"
    fi
    if [ -z "$missing" ]; then pass; else
        fail "$name" "expected $missing"
        sed 's/^/    /' "$work/said"
    fi
}
cold=DEVTENSOR_CACHE=0
works='^the sum on gpu\(0\) gives 6$'
both='^the sum on gpu\(1\) gives 6$'
same='^around: the same$'
path='^reason: DEVTENSOR_CUDA_PATH'
no_nvrtc='^reason: the NVIDIA driver works, but NVRTC was not found'
install='install one for CUDA 11.2 or newer'
sum='^the sum on gpu\(0\):'
must_compile='its kernel has to be compiled, but NVRTC'
too_new='for which this NVRTC is too new; .*DEVTENSOR_NVRTC_PATH'

# ---- one that works, which also fills the cache ----
meets "everything" "$SIM" -- '^2 gpus$' '^reason: $' "$works" "$both" "$same" '^0 warnings$'

# ---- no driver, or one that does not start ----
if has ldconfig && ldconfig -p | grep -q 'libcuda\.so\.1'; then
    skip "no driver" "this machine has one"
else
    meets "no driver" /nowhere -- '^0 gpus$' \
        '^reason: no NVIDIA driver was found \(libcuda.so.1 .*install the NVIDIA driver'
fi
meets "DEVTENSOR_CUDA_PATH is wrong" "$SIM" DEVTENSOR_CUDA_PATH=/nowhere/libcuda.so.1 \
    -- '^0 gpus$' \
    "$path=/nowhere/libcuda.so.1 cannot be loaded; expected the path of libcuda.so.1"
meets "DEVTENSOR_CUDA_PATH names another library" "$SIM" DEVTENSOR_CUDA_PATH=libm.so.6 \
    -- '^0 gpus$' \
    "$path=libm.so.6 has no cuInit: .* NVIDIA driver.*expected the path of libcuda.so.1"
meets "DEVTENSOR_CUDA_PATH is right" "$SIM" DEVTENSOR_CUDA_PATH="$SIM/libcuda.so.1" -- '^2 gpus$' \
    "$works"
stub=${SIMNVRTC_REAL%/*}/stubs/libcuda.so
if [ -f "$stub" ]; then
    cp "$stub" "$work/places/stub/libcuda.so.1"
    meets "the toolkit's stub" "$work/places/stub" -- '^0 gpus$' \
        'CUDA_ERROR_STUB_LIBRARY|unknown error \(34\)' 'stubs (directory|.*library path)'
else
    skip "the toolkit's stub" "no $stub"
fi
begins='^reason: the NVIDIA driver does not work: cuInit gave'
meets "no GPU" "$SIM" SIMCUDA_BROKEN=100 -- '^0 gpus$' \
    "$begins CUDA_ERROR_NO_DEVICE \(100\): .*nvidia-smi.*CUDA_VISIBLE_DEVICES"
meets "versions that differ" "$SIM" SIMCUDA_BROKEN=803 -- '^0 gpus$' \
    "$begins .*\(803\): .*restart the machine"
meets "no fabric manager" "$SIM" SIMCUDA_BROKEN=802 -- '^0 gpus$' \
    "$begins .*\(802\): .*nvidia-fabricmanager"
meets "an unknown error" "$SIM" SIMCUDA_BROKEN=999 -- '^0 gpus$' "$begins .*\(999\): .*nvidia-smi"
meets "a stub in disguise" "$SIM" SIMCUDA_BROKEN=34 -- '^0 gpus$' \
    "$begins .*\(34\): .*stubs (directory|.*library path)"
meets "a code of the future" "$SIM" SIMCUDA_BROKEN=9876 -- '^0 gpus$' \
    "$begins an unknown error \(9876\): "
meets "no version" "$SIM" SIMCUDA_FAIL=cuDriverGetVersion@0=1 -- '^0 gpus$' \
    '^reason: .*CUDA_ERROR_INVALID_VALUE'

# ---- old drivers ----
printf 'int cuInit(unsigned flags) { return (int)flags; }\n' >"$work/bare.c"
if $CC -shared -fPIC -Wl,-soname,libcuda.so.1 "$work/bare.c" \
    -o "$work/places/bare/libcuda.so.1"; then
    meets "a missing symbol" "$work/places/bare" -- '^0 gpus$' \
        "^reason: the NVIDIA driver has no cuDriverGetVersion: it is too old; $install"
fi
if [ -f "$SIM-11040/libcuda.so.1" ]; then
    # It has all functions that are needed, but cannot load the output of this NVRTC.
    meets "a driver of CUDA 11.4, cold" "$SIM-11040:$SIM" $cold SIMCUDA_DRIVER=11040 -- '^0 gpus$' \
        "$no_nvrtc.*libnvrtc.so.13 \(too new for the driver\).*set DEVTENSOR_NVRTC_PATH"
    cp -a "$DEVTENSOR_CACHE_DIR" "$work/places/warm"
    meets "a driver of CUDA 11.4, and kernels of a newer one" "$SIM-11040:$SIM" \
        SIMCUDA_DRIVER=11040 \
        DEVTENSOR_CACHE_DIR="$work/places/warm" -- '^2 gpus$' \
        "$sum DVT_ERR_NO_COMPILER: dvt_sub_scalar: $must_compile.*too new for the driver"
else
    skip "a driver of CUDA 11.4" "not in $SIM-11040"
fi

# ---- NVRTC ----
# A file that is not a library ends the loader's search for that name, which hides the system's
# NVRTC.
cp "$SIM/libcuda.so.1" "$work/places/driver-only/"
for generation in 13 12 11.2; do echo >"$work/places/driver-only/libnvrtc.so.$generation"; done
only=$work/places/driver-only
nothing='; install the CUDA toolkit or its NVRTC package, or set DEVTENSOR_NVRTC_PATH'
nothing="$no_nvrtc \(libnvrtc.so.13.*$nothing"
meets "no NVRTC, cold" "$only" $cold -- '^0 gpus$' "$nothing"
meets "no NVRTC, warm" "$only" -- '^2 gpus$' "$works" "$both" "$same" '^compiled 0, from disk [1-9]'
meets "CUDA_PATH is wrong" "$only" $cold CUDA_PATH=/nowhere CUDA_HOME=/nowhere -- '^0 gpus$' \
    "$nothing"
meets "CUDA_PATH is wrong where nobody needs it" "$SIM" $cold CUDA_PATH=/nowhere -- '^2 gpus$' \
    "$works" '^compiled [1-9]'
mkdir -p "$work/places/toolkit"
ln -s "$SIM" "$work/places/toolkit/lib64"
meets "CUDA_HOME has it" "$only" $cold CUDA_HOME="$work/places/toolkit" -- '^2 gpus$' "$works" \
    '^compiled [1-9]'
named='DEVTENSOR_NVRTC_PATH=/nowhere is .* working NVRTC; expected libnvrtc or '
named="^reason: the NVIDIA driver works, but $named"
meets "DEVTENSOR_NVRTC_PATH is wrong" "$SIM" $cold DEVTENSOR_NVRTC_PATH=/nowhere -- '^0 gpus$' \
    "$named"
meets "DEVTENSOR_NVRTC_PATH is a folder" "$only" $cold DEVTENSOR_NVRTC_PATH="$SIM" -- '^2 gpus$' \
    "$works" '^compiled [1-9]'
meets "DEVTENSOR_NVRTC_PATH is a file" "$only" $cold DEVTENSOR_NVRTC_PATH="$SIM/libnvrtc.so.12" \
    -- '^2 gpus$' "$works" '^compiled [1-9]'
meets "NVRTC compiles nothing" "$SIM" $cold SIMNVRTC_FAIL=nvrtcCompileProgram@0=7 -- '^0 gpus$' \
    "$no_nvrtc.*tried libnvrtc.so.13 \(does not compile\).*set DEVTENSOR_NVRTC_PATH"
meets "NVRTC refuses one kernel" "$SIM" $cold SIMNVRTC_FAIL=nvrtcCompileProgram@2=6 -- '^2 gpus$' \
    "$sum DVT_ERR_INTERNAL: dvt_sub_scalar: compiling its kernel gave NVRTC_ERROR_COMPILATION" \
    "$both"

# ---- GPUs ----
rm -rf "$work/newer"
mkdir -m 700 "$work/newer"
meets "a GPU newer than NVRTC" "$SIM" SIMCUDA_CC=130 DEVTENSOR_CACHE_DIR="$work/newer" \
    -- '^2 gpus$' "$works" "$both" '^compiled [1-9]' '^0 warnings$'
if grep -rqa '^\.target sm_' "$work/newer"; then
    pass
else
    fail "a GPU newer than NVRTC gets PTX"
fi
meets "PTX from the disk" "$SIM" SIMCUDA_CC=130 DEVTENSOR_CACHE_DIR="$work/newer" -- "$works" \
    "$both" '^compiled 0, from disk [1-9]'
meets "a GPU older than NVRTC's oldest" "$SIM" $cold SIMCUDA_CC=60 -- '^2 gpus$' \
    "$sum DVT_ERR_UNSUPPORTED: dvt_sub_scalar: .* has compute capability 6\.0, $too_new"
meets "GPUs of two kinds" "$SIM" SIMCUDA_CC=80,90 -- '^2 gpus$' "$works" "$both" "$same" \
    '^0 warnings$'
meets "one GPU" "$SIM" SIMCUDA_DEVICES=1 -- '^1 gpus$' "$works" "$same"
meets "three gpus on one GPU" "$SIM" SIMCUDA_DEVICES=1 DEVTENSOR_VIRTUAL_GPUS=3 -- '^3 gpus$' \
    "$works" "$both" \
    '^the sum on gpu\(2\) gives 6$' "$same" '^0 warnings$'
meets "three gpus on two GPUs" "$SIM" DEVTENSOR_VIRTUAL_GPUS=3 -- '^3 gpus$' \
    '^the sum on gpu\(2\) gives 6$' "$same" '^0 warnings$'
meets "DEVTENSOR_CUDA=0" "$SIM" DEVTENSOR_CUDA=0 -- '^0 gpus$' \
    '^reason: DEVTENSOR_CUDA=0 turns CUDA off$'
meets "DEVTENSOR_CUDA=0 with virtual GPUs" "$SIM" DEVTENSOR_CUDA=0 DEVTENSOR_VIRTUAL_GPUS=2 \
    -- '^2 gpus$' "$works" "$both" '^compiled 0, from disk 0$'

# ---- peer copies: there and back, three times each ----
meets "peers that are refused" "$SIM" SIMCUDA_PEER=no -- "$works" "$both" "$same" '^0 warnings$'
meets "peers that corrupt data" "$SIM" SIMCUDA_PEER=lies -- "$works" "$both" "$same" \
    '^warning: copies from gpu\(0\) to gpu\(1\) .*arrive .*; they go through host memory$' \
    '^2 warnings$'
meets "DEVTENSOR_P2P=0" "$SIM" DEVTENSOR_P2P=0 -- "$works" "$both" "$same" '^0 warnings$'
meets "peers that corrupt data, and DEVTENSOR_P2P=0" "$SIM" SIMCUDA_PEER=lies DEVTENSOR_P2P=0 \
    -- "$works" \
    "$both" "$same"
finish
