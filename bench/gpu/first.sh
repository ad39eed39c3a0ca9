#!/bin/sh
# The first call on a machine with a GPU: at most TIME seconds, the most telling steps first. Each
# step is a process with a limit; a step that fails, hangs or loses the GPU is a line, and the next
# one runs. JSON lines are appended to FOLDER/results.jsonl at once, output to FOLDER/log.txt, the
# profiler's counters to FOLDER/counters.csv. report.py writes the tables, anywhere.
# usage: first.sh FOLDER [STEP...]    default: all of
#     gpu smoke start rows peers sanitizer counters full
# Environment:
#     TIME      seconds of the whole call, with the build if there is no pack; default: 570
#     PACK      programs and kernels of pack.sh; default: build/gpu-pack, else those of $BUILD
#     ROWS      the rows; default: bench/gpu/rows.txt
#     SMOKE     seconds of one smoke test; default: 20
#     SAMPLES   samples of a row, 1 to 101; default: 31
#     DEVTENSOR_NVRTC_PATH, BENCH_CUBLAS_PATH    where NVRTC and cuBLAS are; otherwise they are also
#               searched in the packages of PYTHON
#     BUILD, PYTHON, MAKE, as the Makefile sets them
: "${BUILD:=build/release}" "${PYTHON:=python3}" "${TIME:=570}" "${PACK:=build/gpu-pack}" \
    "${ROWS:=bench/gpu/rows.txt}" "${SMOKE:=20}" "${SAMPLES:=31}"
[ $# -gt 0 ] || { sed -n '2,/^: /s/^# \{0,1\}//p' "$0"; exit 2; }
. bench/gpu/tests.sh
for number in "$TIME" "$SMOKE" "$SAMPLES"; do
    case $number in
    '' | *[!0-9]*)
        echo "first.sh: TIME, SMOKE and SAMPLES are whole numbers, not $number"
        exit 2
        ;;
    esac
done
if [ "$SAMPLES" -lt 1 ] || [ "$SAMPLES" -gt 101 ]; then
    echo "first.sh: SAMPLES=$SAMPLES; expected is 1 to 101"
    exit 2
fi
OUT=$1
shift
[ $# -gt 0 ] || set -- gpu smoke start rows peers sanitizer counters full
mkdir -p "$OUT" || exit 2
LINES=$OUT/results.jsonl
LOG=$OUT/log.txt
SAID=$OUT/said.txt # of the step in progress: it stays when the call is cut
BEGIN=$(date +%s)
WORK=$(mktemp -d) || exit 2
trap 'rm -rf "$WORK"' EXIT

# ---- lines and steps ----
left() { echo $((TIME - $(date +%s) + BEGIN)); }
plain() { tr -d '\000-\037"\\\177-\377' | cut -c 1-300; } # text inside JSON
line() { # name, state, seconds, detail
    detail=$(printf %s "$4" | plain)
    printf '{"kind": "step", "step": "%s", "state": "%s", "seconds": %s, "detail": "%s"}\n' \
        "$1" "$2" "$3" "$detail" >>"$LINES"
    [ "$2" = running ] || echo "$1: $2, $3 s${detail:+: $detail}"
}
ended() { # process, seconds: waits for a process that may hang in the driver; false: it still does
    until=$(($(date +%s) + $2))
    while kill -0 "$1" 2>/dev/null; do
        [ "$(date +%s)" -lt $until ] || return 1
        sleep 0.1
    done
}
# Becomes a command that is killed when it takes longer or when this script ends. So a call that was
# killed leaves no work on the GPU. A parent that ended before setpriv ran is found by its number.
if command -v setpriv >/dev/null && setpriv --pdeathsig KILL true 2>/dev/null; then
    limited() { # seconds, command...
        # shellcheck disable=SC2016
        exec setpriv --pdeathsig KILL sh -c \
            '[ "$PPID" = "$0" ] && export TIMEOUT_PID=$$ && exec timeout -k 3 "$@"' $$ "$1" \
            setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$TIMEOUT_PID" ] && exec "$@"' "$@"
    }
else
    limited() { exec timeout -k 3 "$@"; }
fi
# Runs a command for at most `seconds`, or what is left of the call. Exit code 77: skipped.
step() { # name, seconds, command...
    name=$1
    limit=$2
    shift 2
    [ "$limit" -le "$(left)" ] || limit=$(left)
    if [ "$limit" -lt 1 ]; then
        line "$name" "skipped" 0 "the time is gone"
        return 1
    fi
    line "$name" running 0 ""
    started=$(date +%s.%N)
    limited "$limit" "$@" >"$SAID" 2>&1 &
    process=$!
    code=137
    ! ended $process $((limit + 6)) || { wait $process; code=$?; }
    seconds=$(echo "$started $(date +%s.%N)" | awk '{printf "%.2f", $2 - $1}')
    { echo "==== $name: $*"; tail -c 200000 "$SAID"; } >>"$LOG"
    last=$(tail -n 1 "$SAID")
    case $code in
    0) line "$name" passed "$seconds" "$last" ;;
    77) line "$name" skipped "$seconds" "$last" ;;
    124 | 137) line "$name" "timed out" "$seconds" "$last" ;;
    *) line "$name" failed "$seconds" "exit code $code: $(grep -a -m 1 ^FAIL "$SAID" ||
        echo "$last")" ;;
    esac
    [ $code -eq 0 ]
}
missing() { line "$1" skipped 0 "$2"; }
found() { # program: its path, also where the toolkits put it
    command -v "$1" || ls /usr/local/cuda/bin/"$1" /opt/nvidia/nsight-compute/*/"$1" 2>/dev/null |
        tail -n 1
}
finish() { # state, detail
    line end "$1" $(($(date +%s) - BEGIN)) "$2"
    rm -f "$SAID"
}
about() { sed -n "s/^$1 //p" "$PACK/about" 2>/dev/null; } # a fact of the pack

# ---- the call ----
state=none
if [ -d "$PACK" ]; then
    state=current
    [ "$(about sources)" = "$(sum_of_sources)" ] || state="of other sources than these"
fi
printf '{"kind": "call", "date": "%s", "steps": "%s", "commit": "%s", "pack": "%s"' \
    "$(date -u +%Y-%m-%dT%H:%MZ)" "$*" "$(commit_here | tr -d '\n')" "$state" >>"$LINES"
printf ', "commit of the pack": "%s", "cores": "%s", "processor": "%s", "system": "%s"}\n' \
    "$(about commit)" "$(getconf _NPROCESSORS_ONLN)" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo 2>/dev/null | head -n 1 | plain)" \
    "$(uname -sr | plain)" >>"$LINES"
[ "$state" = none ] || [ "$state" = current ] || echo "the pack is $state; make gpu-pack renews it"

# ---- libraries in the packages of Python: nvidia/*/lib ----
if [ -z "$DEVTENSOR_CUDA_PATH" ]; then # not on a simulated driver
    packages=$("$PYTHON" -c 'import glob, sys
print(":".join(d for p in sys.path for d in sorted(glob.glob(p + "/nvidia/*/lib"))))' 2>/dev/null)
    [ -z "$packages" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$packages"
fi

# ---- programs: those of the pack if they start here ----
OURS=$BUILD/bench/gpu/ours TESTS=$BUILD/cuda/tests UNITS=$BUILD/unit/tests RUN=$BUILD/examples/run
"$PACK/ours" >/dev/null 2>&1
if [ $? -eq 2 ]; then # it printed its usage
    OURS=$PACK/ours TESTS=$PACK/cuda-tests UNITS=$PACK/unit-tests RUN=$PACK/run
else # no pack, or one of a system with a newer C library
    step build "$TIME" env MAKEFLAGS= "${MAKE:-make}" -s -j"$(getconf _NPROCESSORS_ONLN)" \
        B="$BUILD" "$OURS" "$TESTS" "$UNITS" "$RUN" || {
        finish failed "the programs could not be built: $last"
        exit 1
    }
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

gpu() {
    step gpu 20 "$OURS" gpu || { finish failed "no GPU: $last"; exit 1; }
    smi=$(found nvidia-smi)
    if [ -n "$smi" ]; then
        ask=name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,power.draw
        ask=$ask,power.limit,temperature.gpu,mig.mode.current,ecc.mode.current
        ask=$ask,utilization.gpu,memory.used
        step nvidia-smi 10 "$smi" --query-gpu=$ask --format=csv,noheader
        step others 10 "$smi" --query-compute-apps=pid,used_memory --format=csv,noheader
    else
        missing nvidia-smi "not installed"
    fi
}

# Each family's tests; `full` runs the others, and all dtypes and operations.
smoke() {
    for family in $FIRST; do
        step "smoke-$family" "$SMOKE" env DEVTENSOR_ISA=reference "$TESTS" "test_gpu_$family.c"
    done
}

# From the start of a process to the loss of its first step of LeNet: with no kernel in the cache,
# with the pack's kernels or else those of the first one.
start() {
    step start-cold 60 env DEVTENSOR_CACHE_DIR="$WORK/empty" "$OURS" first
    warm=$WORK/empty
    [ ! -d "$PACK/kernels" ] || warm=$WORK/kernels
    step start-warm 30 env DEVTENSOR_CACHE_DIR="$warm" "$OURS" first
    for library in torch cupy; do
        has_python "start-$library" || continue
        step "start-$library" 60 "$PYTHON" bench/gpu/peer.py first "$library"
    done
}

has_python() { # step
    command -v "$PYTHON" >/dev/null || { missing "$1" "no $PYTHON"; return 1; }
}
rows() { step rows 200 "$OURS" "$ROWS" "$LINES" --samples "$SAMPLES"; }
peers() {
    has_python peers || return
    step peers-torch 150 "$PYTHON" bench/gpu/peer.py rows torch "$ROWS" "$LINES" "$SAMPLES"
    step peers-cupy 40 "$PYTHON" bench/gpu/peer.py rows cupy "$ROWS" "$LINES" "$SAMPLES"
}

# A selection: one test or file of each kind of kernel.
sanitizer() {
    program=$(found compute-sanitizer)
    [ -n "$program" ] || { missing sanitizer "compute-sanitizer is not installed"; return; }
    for tool in memcheck racecheck; do
        for family in matmul_wgmma matmul_mma matmul conv reduce scan sort; do
            step "$tool-$family" 20 "$program" --tool $tool --error-exitcode 99 --print-limit 5 \
                "$TESTS" "test_gpu_$family.c"
        done
    done
}

# Eight kernels: what limits each.
counters() {
    program=$(found ncu)
    [ -n "$program" ] || { missing counters "ncu is not installed"; return; }
    for wanted in "add n=" "exp n=" "where n=" "sum rows=.* axis=1" "softmax rows=65536" \
        "mm m=4096 n=4096 k=4096 dtype=f32" "mm m=4096 n=4096 k=4096 dtype=bf16" \
        "conv batch=32 c=64 h=56 o=64 k=3 pad=1"; do
        row=$(sed -n "s/^\($wanted\([^|]*[^ |]\)\{0,1\}\) *|.*/\1/p" "$ROWS" | head -n 1)
        [ -n "$row" ] || continue
        if step "counters-$row" 25 "$program" --clock-control none --set basic --csv \
            --page details "$OURS" "$ROWS" "$WORK/once" --once --only "$row"; then
            { echo "==== $row"; grep -a '^"' "$SAID"; } >>"$OUT/counters.csv"
        fi
        if grep -a -q ERR_NVGPUCTRPERM "$SAID"; then
            missing counters "the driver permits no counters: ERR_NVGPUCTRPERM"
            return
        fi
    done
}

full() {
    for family in $OTHERS $FIRST; do
        step "full-$family" 120 env DVT_TEST_FULL=1 DEVTENSOR_ISA=reference "$TESTS" \
            "test_gpu_$family.c" || [ "$(left)" -gt 0 ] || return
    done
    # Where there is one GPU, gpu(0) and gpu(1) share it.
    step full-two-gpus 60 env DEVTENSOR_VIRTUAL_GPUS=2 DEVTENSOR_ISA=reference "$TESTS" \
        test_gpu_all_reduce.c test_gpu_copies.c gpu_kernel_on_two_gpus
    step full-gradients 120 env DVT_TEST_GPU=1 "$UNITS" test_gradients.c test_autograd.c \
        test_blocks.c test_layers.c test_losses.c
    step full-units 200 "$UNITS"
    step full-run 120 "$RUN" --epochs 1
}

for part in "$@"; do
    case $part in
    gpu | smoke | start | rows | peers | sanitizer | counters | full) $part ;;
    *) missing "$part" "no such step" ;;
    esac
done
finish "$([ "$(left)" -gt 0 ] && echo passed || echo "timed out")" ""
