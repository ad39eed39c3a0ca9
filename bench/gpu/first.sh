#!/bin/sh
# The first call on a machine with a GPU: at most TIME seconds, the most telling steps first. Each
# step is a process with a limit; a step that fails, hangs or loses the GPU is a line, and the next
# one runs. JSON lines are appended to FOLDER/results.jsonl at once, output to FOLDER/log.txt, the
# profiler's counters to FOLDER/counters.csv. report.py writes the tables, anywhere.
# usage: first.sh FOLDER [STEP...]    default: all of
#     gpu smoke start rows peers sanitizer counters full
# Environment:
#     TIME      seconds of the whole call; default: 570
#     PACK      programs and kernels of pack.sh; default: build/gpu-pack, else those of $BUILD
#     ROWS      the rows; default: bench/gpu/rows.txt
#     SMOKE     seconds of one smoke test; default: 15
#     SAMPLES   samples of a row; default: 31
#     BUILD, PYTHON, as the Makefile sets them
: "${BUILD:=build/release}" "${PYTHON:=python3}" "${TIME:=570}" "${PACK:=build/gpu-pack}" \
    "${ROWS:=bench/gpu/rows.txt}" "${SMOKE:=15}" "${SAMPLES:=31}"
[ $# -gt 0 ] || { sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 2; }
OUT=$1
shift
mkdir -p "$OUT" || exit 2
LINES=$OUT/results.jsonl
LOG=$OUT/log.txt
BEGIN=$(date +%s)
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT

# ---- programs: those of the pack if they start here ----
OURS=$BUILD/bench/gpu/ours TESTS=$BUILD/cuda/tests UNITS=$BUILD/unit/tests RUN=$BUILD/examples/run
FROM=$BUILD
"$PACK/ours" >/dev/null 2>&1
if [ $? -eq 2 ]; then # it printed its usage
    OURS=$PACK/ours TESTS=$PACK/cuda-tests UNITS=$PACK/unit-tests RUN=$PACK/run FROM=$PACK
elif [ ! -x "$OURS" ]; then # a pack of a system with a newer C library
    MAKEFLAGS= "${MAKE:-make}" -s config="${BUILD##*/}" "$OURS" "$TESTS" "$UNITS" "$RUN"
fi
# The kernel cache must belong to this user, and to nobody else: a copy does.
mkdir -m 700 "$WORK/kernels" "$WORK/empty"
if [ -d "$PACK/kernels" ]; then
    cp -r "$PACK/kernels/." "$WORK/kernels/"
    chmod -R u=rwX,go= "$WORK/kernels"
    DEVTENSOR_CACHE_DIR=$WORK/kernels
fi
DEVTENSOR_CACHE_DIR=${DEVTENSOR_CACHE_DIR:-$WORK/kernels}
[ ! -d "$PACK/data" ] || DEVTENSOR_DATA=$PACK/data
export DEVTENSOR_CACHE_DIR DEVTENSOR_DATA

# ---- steps ----
left() { echo $((TIME - $(date +%s) + BEGIN)); }
plain() { tr -d '\000-\037"\\' | cut -c 1-300; } # text inside JSON
line() { # name, state, seconds, detail
    printf '{"kind": "step", "step": "%s", "state": "%s", "seconds": %s, "detail": "%s"}\n' \
        "$1" "$2" "$3" "$(printf %s "$4" | plain)" >>"$LINES"
    echo "$1: $2, $3 s${4:+: $(printf %s "$4" | plain)}"
}
# Runs a command for at most `seconds`, or what is left of the call.
step() { # name, seconds, command...
    name=$1
    limit=$2
    shift 2
    [ "$limit" -le "$(left)" ] || limit=$(left)
    if [ "$limit" -lt 1 ]; then
        line "$name" "skipped" 0 "the time is gone"
        return 1
    fi
    started=$(date +%s.%N)
    timeout -k 3 "$limit" "$@" >"$WORK/said" 2>&1
    code=$?
    seconds=$(echo "$started $(date +%s.%N)" | awk '{printf "%.2f", $2 - $1}')
    { echo "==== $name: $*"; tail -c 200000 "$WORK/said"; } >>"$LOG"
    case $code in
    0) line "$name" passed "$seconds" "$(tail -n 1 "$WORK/said")" ;;
    124 | 137) line "$name" "timed out" "$seconds" "$(tail -n 1 "$WORK/said")" ;;
    *) line "$name" failed "$seconds" "exit code $code: $(grep -m 1 ^FAIL "$WORK/said" ||
        tail -n 1 "$WORK/said")" ;;
    esac
    [ $code -eq 0 ]
}
missing() { line "$1" skipped 0 "$2"; }
found() { # program: its path, also where the toolkits put it
    command -v "$1" || ls /usr/local/cuda/bin/"$1" /opt/nvidia/nsight-compute/*/"$1" 2>/dev/null |
        tail -n 1
}

gpu() {
    printf '{"kind": "machine", "programs": "%s", "processor": "%s", "system": "%s"}\n' "$FROM" \
        "$(sed -n 's/^model name.*: //p' /proc/cpuinfo 2>/dev/null | head -n 1 | plain)" \
        "$(uname -sr | plain)" >>"$LINES"
    step gpu 20 "$OURS" gpu || { line end failed $(($(date +%s) - BEGIN)) "no GPU"; exit 1; }
    smi=$(found nvidia-smi)
    if [ -n "$smi" ]; then
        ask=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,power.draw
        ask=$ask,power.limit,temperature.gpu,mig.mode.current,ecc.mode.current
        step nvidia-smi 10 "$smi" --query-gpu=$ask --format=csv,noheader
    else
        missing nvidia-smi "not installed"
    fi
}

# The tests of the families of kernels that most programs need. `full` runs the others, and all
# dtypes and operations; `rows` compares large shapes with float64.
FIRST="matmul_mma matmul elementwise reduce conv softmax copies sort"
OTHERS="random scan index optimizer lenet conv_tf32 functions layouts dtypes pool memory empty fill
    share process all_reduce prewarm"
smoke() {
    for family in $FIRST; do
        step "smoke-$family" "$SMOKE" env DEVTENSOR_ISA=reference "$TESTS" "test_gpu_$family.c"
    done
}

# From the start of a process to the loss of its first step of LeNet.
start() {
    step start-cold 60 env DEVTENSOR_CACHE_DIR="$WORK/empty" "$OURS" first
    step start-warm 30 env DEVTENSOR_CACHE_DIR="$WORK/empty" "$OURS" first
    for library in torch cupy; do
        step "start-$library" 60 "$PYTHON" bench/gpu/peer.py first "$library"
    done
}

rows() { step rows 200 "$OURS" "$ROWS" "$LINES" --samples "$SAMPLES"; }
peers() {
    step peers-torch 110 "$PYTHON" bench/gpu/peer.py rows torch "$ROWS" "$LINES" "$SAMPLES"
    step peers-cupy 40 "$PYTHON" bench/gpu/peer.py rows cupy "$ROWS" "$LINES" "$SAMPLES"
}

# A selection: one test or file of each kind of kernel.
sanitizer() {
    program=$(found compute-sanitizer)
    [ -n "$program" ] || { missing sanitizer "compute-sanitizer is not installed"; return; }
    for tool in memcheck racecheck; do
        for family in matmul_mma matmul conv reduce scan sort; do
            step "$tool-$family" 20 "$program" --tool $tool --error-exitcode 99 --print-limit 5 \
                "$TESTS" "test_gpu_$family.c"
        done
    done
}

# Eight kernels: what limits each.
counters() {
    program=$(found ncu)
    [ -n "$program" ] || { missing counters "ncu is not installed"; return; }
    for row in "add n=" "exp n=" "where n=" "columns=8192 axis=1" "softmax rows=65536" \
        "k=4096 dtype=f32" "k=4096 dtype=bf16" "c=64 h=56 o=64 k=3 pad=1"; do
        if step "counters-$row" 25 "$program" --clock-control none --set basic --csv \
            --page details "$OURS" "$ROWS" "$WORK/once" \
            --once --row "$row"; then
            { echo "==== $row"; grep '^"' "$WORK/said"; } >>"$OUT/counters.csv"
        fi
    done
}

full() {
    for family in $OTHERS $FIRST; do
        step "full-$family" 120 env DVT_TEST_FULL=1 DEVTENSOR_ISA=reference "$TESTS" \
            "test_gpu_$family.c" || [ "$(left)" -gt 0 ] || return
    done
    step full-gradients 120 env DVT_TEST_GPU=1 "$UNITS" test_gradients.c test_autograd.c \
        test_blocks.c test_layers.c test_losses.c
    step full-units 200 "$UNITS"
    step full-run 120 "$RUN" --epochs 1
}

[ $# -gt 0 ] || set -- gpu smoke start rows peers sanitizer counters full
for part in "$@"; do
    case $part in
    gpu | smoke | start | rows | peers | sanitizer | counters | full) $part ;;
    *) missing "$part" "no such step" ;;
    esac
done
line end "$([ "$(left)" -gt 0 ] && echo passed || echo "timed out")" $(($(date +%s) - BEGIN)) ""
