#!/bin/sh
# Rehearses the first call on a GPU (bench/gpu) on the simulated driver. Small rows run next to
# doubles of cuBLAS. A row fails, a row exceeds its time, a test hangs, a call is cut. The report
# must show all that. The pack gets its kernels from the real NVRTC.
# Environment: BUILD, LIBRARY_BUILD (of the programs), CC, MAKE, PYTHON, SIM (directory of the
# simulated driver), CUDA_HOME.
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${LIBRARY_BUILD:=build/release}" "${MAKE:=make}" "${CC:=cc}" \
    "${PYTHON:=python3}" "${SIM:=build/simcuda/lib}" "${CUDA_HOME:=/usr/local/cuda}"
if [ ! -f "$SIM/libcuda.so.1" ]; then
    skip "the first call on a GPU" "no simulated driver in $SIM"
    finish
    exit
fi
work=$BUILD/first
rm -rf "$work"
mkdir -p "$work/pack" "$work/cublas"

# ---- programs: ours; tests of which one hangs and one fails ----
# Not a target of the Makefile in use: several parts must not write the same objects.
try "ours.c compiles" $CC -std=gnu11 -O1 -Wall -Wextra -I. -D_GNU_SOURCE \
    -DDEVTENSOR_IMPLEMENTED bench/gpu/ours.c ${LIBRARY:-$LIBRARY_BUILD/devtensor.o} \
    -o "$work/pack/ours" ${LIBS:--lm -ldl -lpthread}
[ "$failed" -eq 0 ] || { finish; exit; }
for library in libcublas libcublasLt; do
    try "$library's double" $CC -std=gnu11 -O1 -I. -shared -fPIC "$here/cublas_double.c" \
        -o "$work/cublas/$library.so.13" -ldl
done
cat >"$work/pack/cuda-tests" <<'END'
#!/bin/sh
case $1 in
test_gpu_matmul.c) sleep 30 ;;
test_gpu_conv.c) echo "FAIL a test: with a \"quote\""; exit 1 ;;
esac
echo "1 passed, 0 failed, 0 skipped"
END
# Tools that only print, or run the program.
mkdir -p "$work/tools"
cat >"$work/tools/ncu" <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in --csv) shift ;; *) shift 2 ;; esac
done
"$@" || exit
echo "==PROF== Connected"
printf '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n"0","kernel","Duration",'
printf '"us","5"\n'
END
cat >"$work/tools/compute-sanitizer" <<'END'
#!/bin/sh
[ "$2" = memcheck ] && exec "$7" "$8"
exit 99
END
chmod +x "$work/pack/cuda-tests" "$work/tools"/*
first() { # FOLDER STEP...: the call; PYTHON is missing, so there are no peers
    PATH=$work/tools:$PATH PACK=$work/pack ROWS=$here/rows.txt SMOKE=1 SAMPLES=3 PYTHON=no-python \
        BENCH_CUBLAS_PATH=$work/cublas sh bench/gpu/first.sh "$@" >"$work/said" 2>&1
}
has_line() { # PATTERN: in the results
    grep -q "$1" "$work/out/results.jsonl" && pass || fail "a line like $1" "is missing"
}

first "$work/out" gpu smoke rows peers sanitizer counters nonsense
has_line '"step": "gpu", "state": "passed".*driver for CUDA'
has_line '"step": "smoke-matmul", "state": "timed out"'
has_line '"step": "smoke-conv", "state": "failed".*a test: with a quote'
has_line '"step": "smoke-sort", "state": "passed"'
has_line '"step": "peers", "state": "skipped".*no no-python'
has_line '"step": "memcheck-sort", "state": "passed"'
has_line '"step": "racecheck-sort", "state": "failed".*exit code 99'
has_line '"step": "counters-add n=5000", "state": "passed"'
has_line '"step": "nonsense", "state": "skipped", .*no such step'
has_line '"row": "nothing n=5", "who": "devtensor", "failed": "no such operation"'
for who in devtensor cublas cublaslt; do
    has_line "mm m=33 n=17 k=20 dtype=f32 ta=1 tb=1\", \"who\": \"$who\".*\"right\": true"
done
grep -q '"right": false' "$work/out/results.jsonl" &&
    fail "a row" "is wrong: $(grep -m 1 '"right": false' "$work/out/results.jsonl")" || pass
rows=$(grep -c '^[a-z].*|' "$here/rows.txt")
measured=$(grep '"who": "devtensor"' "$work/out/results.jsonl" | cut -d '"' -f 8 | sort -u | wc -l)
[ "$rows" -eq "$measured" ] && pass || fail "the rows" "$measured lines of ours, not $rows"

has_line '"kind": "call".*"steps": "gpu smoke rows peers sanitizer counters nonsense".*"pack": "of'
has_line '"step": "smoke-matmul", "state": "running"'
has_line '"row": "mm m=33 n=17 k=20 dtype=f32", "who": "devtensor".*"right": null'
has_line '"kind": "kernels", "step": "rows", "compiled": [0-9]'

# A cuBLAS that fails or computes one element wrong has its own line; ours is measured.
mkdir -p "$work/broken"
broken_cublas() { # MACRO PATTERN: of the line of cuBLAS
    try "a cuBLAS that $1" $CC -std=gnu11 -O1 -I. -D"$1" -shared -fPIC "$here/cublas_double.c" \
        -o "$work/broken/libcublas.so.13" -ldl
    printf 'mm m=133 n=117 k=70 dtype=f32 | cublas | 1e-5 | 0.80 cublas\n' >"$work/peer.txt"
    rm -f "$work/peer.jsonl"
    BENCH_CUBLAS_PATH=$work/broken "$work/pack/ours" "$work/peer.txt" "$work/peer.jsonl" \
        --samples 3 >"$work/said" 2>&1
    grep -q "\"who\": \"cublas\".*$2" "$work/peer.jsonl" &&
        grep -q '"who": "devtensor".*"right": true' "$work/peer.jsonl" && pass ||
        fail "a cuBLAS that $1" "$(cat "$work/peer.jsonl")"
}
broken_cublas FAILS '"failed": "cublasGemmEx returned 13"'
broken_cublas ERRS '"right": false'

# A call that is killed leaves no process behind, and its line says which step was running.
if setpriv --pdeathsig KILL true 2>/dev/null; then
    SMOKE=30 PACK=$work/pack sh bench/gpu/first.sh "$work/killed" smoke >"$work/said" 2>&1 &
    call=$!
    until grep -q '"smoke-matmul", "state": "running"' "$work/killed/results.jsonl" 2>/dev/null; do
        kill -0 $call 2>/dev/null || break
        sleep 0.1
    done
    kill -9 $call
    wait $call 2>/dev/null
    waited=0
    while pgrep -f "$work/pack/cuda-tests test_gpu_matmul.c" >/dev/null && [ $waited -lt 100 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    pgrep -f "$work/pack/cuda-tests test_gpu_matmul.c" >/dev/null &&
        fail "a call that is killed" "leaves its step running" || pass
    tail -n 1 "$work/killed/results.jsonl" | grep -q '"smoke-matmul", "state": "running"' && pass ||
        fail "a call that is killed" "$(tail -n 1 "$work/killed/results.jsonl")"
else
    skip "a call that is killed" "no setpriv with --pdeathsig"
fi
TIME=soon first "$work/words" gpu
grep -q 'whole numbers, not soon' "$work/said" && pass || fail "TIME=soon" "$(cat "$work/said")"

# A call without time left, and a row that loses its process: the next row has a line.
TIME=0 first "$work/cut" rows
grep -q '"step": "rows", "state": "skipped"' "$work/cut/results.jsonl" && pass ||
    fail "a call without time" "$(cat "$work/cut/results.jsonl")"
printf 'exp n=500000000 | copy | 0 | 1 copy\nadd n=100 | copy | 1 | 1 copy\n' >"$work/lost.txt"
SIMCUDA_MEM=64M "$work/pack/ours" "$work/lost.txt" "$work/lost.jsonl" --samples 3 --alone \
    >"$work/said" 2>&1
grep -q '"row": "exp n=500000000".*"failed"' "$work/lost.jsonl" &&
    grep -q '"row": "add n=100".*"seconds"' "$work/lost.jsonl" && pass ||
    fail "a row without memory" "$(cat "$work/lost.jsonl")"

# A row that exceeds its time: 1 s is not enough for the simulator.
printf 'mm m=2048 n=2048 k=2048 | cublas | 0 | 1 cublas\nadd n=100 | copy | 1 | 1 copy\n' \
    >"$work/slow.txt"
"$work/pack/ours" "$work/slow.txt" "$work/slow.jsonl" --samples 3 --alone --limit 1 \
    >"$work/said" 2>&1
grep -q '"row": "mm m=2048.*"failed": "exceeded its time' "$work/slow.jsonl" &&
    grep -q '"row": "add n=100".*"seconds"' "$work/slow.jsonl" && pass ||
    fail "a row that exceeds its time" "$(cat "$work/slow.jsonl")"

# ---- the report, from lines of which the last is cut ----
script "the report" env BUILD="$BUILD" PYTHON="$PYTHON" sh "$here/report.sh"
if has "$PYTHON"; then
    printf '{"kind": "row", "ro' >>"$work/out/results.jsonl"
    try "report.py" "$PYTHON" bench/gpu/report.py "$work/out"
    for pattern in '^| add n=5000 | GB/s | ' 'dtype=f32 | TFLOP/s | .*cublaslt.*of cublas: ' \
        '^| smoke-matmul | timed out ' '^| nothing n=5 | devtensor | no such operation' \
        '^| add n=5000 | `kernel` | 5 us'; do
        grep -q "$pattern" "$work/out/report.md" && pass || fail "the report" "lacks $pattern"
    done
    grep -q '</svg>' "$work/out/report.svg" && pass || fail "the chart" "is cut"
    try "the runners of peers parse" "$PYTHON" -c "
import ast, sys
[ast.parse(open(name).read()) for name in sys.argv[1:]]" bench/gpu/peer*.py
else
    skip "report.py" "no $PYTHON"
fi

# ---- the pack, with the toolkit's NVRTC ----
nvrtc=$(ls "$CUDA_HOME"/lib64/libnvrtc.so* "$CUDA_HOME"/targets/*/lib/libnvrtc.so* 2>/dev/null |
    head -n 1)
mkdir -p "$work/build/bench/gpu" "$work/build/cuda" "$work/build/unit" "$work/build/examples"
cp "$work/pack/ours" "$work/build/bench/gpu/ours"
for program in cuda/tests unit/tests examples/run; do
    cp "$work/pack/cuda-tests" "$work/build/$program"
done
printf '%s | copy | %s | 1 copy\n' 'add n=268435456' 1e-7 \
    'mm m=4096 n=4096 k=4096 dtype=bf16' 2.5e-3 >"$work/two.txt"
if [ -n "$nvrtc" ]; then
    LD_LIBRARY_PATH= DEVTENSOR_NVRTC_PATH="$nvrtc" PROGRAMS="$work/build" PACK="$work/packed" \
        ROWS="$work/two.txt" PACK_TESTS="sort conv" PACK_FIRST=no sh bench/gpu/pack.sh \
        >"$work/said" 2>&1
    grep -q 'packed: [1-9][0-9]* kernels for compute capability 90' "$work/said" && pass ||
        fail "pack.sh" "$(tail -n 2 "$work/said")"
    grep -q 'a test: with a "quote"' "$work/packed/log.txt" &&
        grep -q '^1 passed' "$work/packed/log.txt" && pass ||
        fail "the tests of the pack" "$(tail -n 3 "$work/packed/log.txt")"
    grep -q "^sources $(. bench/gpu/tests.sh; sum_of_sources)\$" "$work/packed/about" && pass ||
        fail "the pack" "does not name its sources: $(cat "$work/packed/about")"
    # The pack holds every kernel of a row and of its comparison: without NVRTC both work.
    $CC -O1 -w -shared -fPIC bench/gpu/null_driver.c -o "$work/libcuda.so.1"
    if LD_LIBRARY_PATH= DEVTENSOR_NVRTC_PATH=/nonexistent DEVTENSOR_CACHE_DIR="$work/private" \
        DEVTENSOR_CUDA_PATH="$work/libcuda.so.1" sh -c 'umask 077 && mkdir "$1" &&
            cp -r "$2"/kernels/* "$1"/ && "$2/ours" "$3" "$1.jsonl" --samples 3 --alone' \
        sh "$work/private" "$work/packed" "$work/two.txt" >"$work/said" 2>&1 &&
        grep -q '"compiled": 0, "cached": [1-9]' "$work/private.jsonl"; then
        pass
    else
        fail "the pack without NVRTC" "$(tail -n 3 "$work/said" "$work/private.jsonl")"
    fi
    ARCH=9.0 sh bench/gpu/pack.sh >"$work/said" 2>&1
    grep -q 'without its point' "$work/said" && pass || fail "ARCH=9.0" "$(cat "$work/said")"
else
    skip "pack.sh" "no NVRTC below $CUDA_HOME"
fi
finish
