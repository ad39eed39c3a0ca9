#!/bin/sh
# Prepares the first call on a GPU where there is none: build/gpu-pack gets the programs of first.sh
# and the kernel cache of an architecture. NVRTC compiles under null_driver.c, so each program
# differs from the one on the GPU in nothing; the keys of the cache do not depend on the machine.
# usage: pack.sh
# Environment:
#     ARCH          compute capability of the GPU; default: 90
#     ROWS          the rows; default: bench/gpu/rows.txt
#     PACK          the result; default: build/gpu-pack
#     PACK_TESTS    files of tests/cuda whose kernels are compiled too, by name; default: those that
#                   first.sh starts first; none: no files
#     PACK_FIRST    no: without the kernels of LeNet
#     BUILD, CC, as the Makefile sets them
: "${BUILD:=build/release}" "${CC:=cc}" "${PACK:=build/gpu-pack}" "${ROWS:=bench/gpu/rows.txt}" \
    "${ARCH:=90}" \
    "${PACK_TESTS:=matmul_mma matmul elementwise reduce conv softmax copies sort}"
umask 077
mkdir -p "$PACK/kernels" "$PACK/driver" && PACK=$(cd "$PACK" && pwd) || exit 1

# ---- programs: dynamic, because they open the driver; the C library must be as new as here ----
cp "$BUILD/bench/gpu/ours" "$PACK/ours" && cp "$BUILD/cuda/tests" "$PACK/cuda-tests" &&
    cp "$BUILD/unit/tests" "$PACK/unit-tests" && cp "$BUILD/examples/run" "$PACK/run" || exit 1
strip "$PACK/ours" "$PACK/cuda-tests" "$PACK/unit-tests" "$PACK/run" 2>/dev/null
newest=$(objdump -T "$PACK/ours" "$PACK/cuda-tests" "$PACK/unit-tests" "$PACK/run" 2>/dev/null |
    sed -n 's/.*(*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)

# ---- MNIST, for the rows of whole trainings ----
for folder in "$DEVTENSOR_DATA" data shared/data ../shared/data; do
    [ -n "$folder" ] && [ -f "$folder/mnist-train-images-idx3-ubyte.gz" ] || continue
    mkdir -p "$PACK/data" && cp "$folder"/mnist-*-ubyte.gz "$PACK/data/"
    break
done

# ---- kernels ----
$CC -O1 -w -shared -fPIC bench/gpu/null_driver.c -o "$PACK/driver/libcuda.so.1" || exit 1
run() { # command: with the driver that does nothing
    env DEVTENSOR_CUDA_PATH="$PACK/driver/libcuda.so.1" BENCH_GPU_ARCH="$ARCH" \
        DEVTENSOR_CACHE_DIR="$PACK/kernels" DEVTENSOR_ISA= "$@"
}
log=$PACK/log.txt
run "$PACK/ours" gpu >"$log" 2>&1 || { cat "$log"; exit 1; }
run "$PACK/ours" "$ROWS" "$PACK/lines" --once --limit 600 >>"$log" 2>&1 || {
    tail -n 5 "$log"
    cat "$PACK/lines" 2>/dev/null
    exit 1
}
[ "$PACK_FIRST" = no ] || run "$PACK/ours" first >>"$log" 2>&1
[ "$PACK_TESTS" = none ] || for name in $PACK_TESTS; do
    run "$PACK/cuda-tests" "test_gpu_$name.c" >>"$log" 2>&1 # zeros are wrong results: ignored
done
rm -rf "$PACK/driver" "$PACK/lines"
count=$(find "$PACK/kernels" -type f | wc -l)
[ "$count" -gt 0 ] || { echo "pack.sh: no kernel was compiled; is NVRTC here?"; exit 1; }
echo "$PACK: $count kernels for compute capability $ARCH, $(du -sh "$PACK" | cut -f 1);" \
    "the programs need GLIBC_$newest"
