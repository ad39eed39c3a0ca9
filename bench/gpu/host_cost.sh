#!/bin/sh
# Measures the host's cost of operations on a GPU under a driver that does nothing, and writes a
# table for this processor: bench/results/gpu-host-KIND.md.
# usage: host_cost.sh
# Environment: BUILD, CC, PYTHON, as the Makefile sets them; OUT: the directory of the table
: "${BUILD:=build/release}" "${CC:=cc}" "${PYTHON:=python3}" "${OUT:=bench/results}"
D=$BUILD/bench/gpu
umask 077
mkdir -p "$D/kernels" "$OUT" && D=$(cd "$D" && pwd) || exit 1
$CC -O1 -w -shared -fPIC bench/gpu/null_driver.c -o "$D/libcuda_null.so" || exit 1
env DEVTENSOR_CUDA_PATH="$D/libcuda_null.so" DEVTENSOR_CACHE_DIR="$D/kernels" \
    DEVTENSOR_VIRTUAL_GPUS= "$D/host_cost" >"$D/host_cost.md" || exit 1
named=$("$PYTHON" bench/cpu/processor.py) && kind=$(echo "$named" | head -n 1) || exit 1
{
    cat <<END
# The host's cost of operations on a GPU: $(echo "$named" | tail -n 1)

\`make bench-gpu-host\`, $(date +%Y-%m-%d), $(nproc) threads, load $(cut -d ' ' -f 1 /proc/loadavg).
The driver accepts every call and does nothing (bench/gpu/null_driver.c), so the time is
devtensor's own, and no GPU is needed. Each operation runs in a scope of its own, with arrays of
float32. Median and least of 1501 rounds of 200 calls (nets: 5), which alternate. Copies are those
of pageable memory to and from the staging buffers, next to one memcpy of the same size; their
rounds alternate, too. The clock of a shared machine varies; the least is that of its fast times.

END
    cat "$D/host_cost.md"
} >"$OUT/gpu-host-$kind.md"
cat "$OUT/gpu-host-$kind.md"
