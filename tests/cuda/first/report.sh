#!/bin/sh
# Tests the report of the first call on a GPU, and the runner of PyTorch's and CuPy's rows. This
# script writes the lines of results.jsonl. The libraries are doubles, of which forms and rows fail.
# Environment: BUILD, PYTHON.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${PYTHON:=python3}"
if ! has "$PYTHON"; then
    skip "the report of a GPU's results" "no $PYTHON"
    finish
    exit
fi
work=$BUILD/first-report
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
gpu=$(cd "$here/../../../bench/gpu" && pwd)
export PYTHONDONTWRITEBYTECODE=1

report() { # FOLDER [OUT]
    "$PYTHON" "$gpu/report.py" "$@" >"$work/said" 2>&1
}
says() { # FILE PATTERN...: has all of them
    file=$1
    shift
    for pattern in "$@"; do
        grep -q -- "$pattern" "$file" && pass || fail "$file" "lacks $pattern"
    done
}
lacks() { # FILE PATTERN
    grep -q -- "$2" "$1" && fail "$1" "has $2" || pass
}
step() { # NAME STATE DETAIL
    printf '{"kind": "step", "step": "%s", "state": "%s", "seconds": 1.5, "detail": "%s"}\n' "$@"
}
row() { # ROW WHO WORK RIGHT FLOOR [KEYS]
    printf '{"kind": "row", "row": "%s", "who": "%s", "seconds": 0.5, "low": 0.5, "high": 0.5, ' \
        "$1" "$2"
    printf '"work": %s, "unit": "GB/s", "right": %s, "floor": "%s", "error": 0.25, ' "$3" "$4" "$5"
    printf '"bound": 0.1%s}\n' "$6"
}
folder() { # NAME: reads its lines
    mkdir -p "$work/$1"
    cat >"$work/$1/results.jsonl"
}

# ---- floors, wrong peers, samples, two lines of a row ----
{
    row "mm m=1" devtensor 30 true "0.80 cublas" ', "samples": 31'
    row "mm m=1" cublas 40 false "0.80 cublas"
    row "mm m=1" torch 20 null "0.80 cublas"
    row "upload bytes=1" devtensor 30 true "1.50 pageable" ', "samples": 3'
    row "upload bytes=1" pageable 15 null "1.50 pageable"
    row "upload bytes=1" pinned 60 null "1.50 pageable"
    row "mnist_099 batch=1" devtensor 30 null "1.00 torch" ', "samples": 1'
    row "add n=1" devtensor 30 null "0.90 copy"
    row "add n=1" devtensor 36 true "0.90 copy"
    row "add n=1" copy 40 null "0.90 copy"
    row "exp n=1" devtensor 36 false "0.90 copy" ', "worst": 7.5, "spot": 0.125'
    row "exp n=1" torch 20 true "0.90 copy"
    row "sum n=1" devtensor 36 null "0.90 copy"
    printf '{"kind": "row", "row": "sum n=1", "who": "devtensor", "failed": "a | fault"}\n'
} | folder rows
printf '# a comment | none\nadd n=1 | copy | 0 | 1 copy\nwhere n=7 | copy | 0 | 1 copy\n' \
    >"$work/all.txt"
ROWS=$work/all.txt report "$work/rows"
says "$work/rows/report.md" \
    '^| mm m=1 .* 1.50 (torch) | 0.80 of cublas: the result of cublas is wrong |' \
    '^| upload .*| 60 (3 samples) |.*| 2.00 (pageable) | 1.50 of pageable: reached, 2.00 |' \
    '^| mnist_099 batch=1 | GB/s | 60 (1 sample) |' \
    '^| add n=1 | GB/s | 72 | copy 80 |  | 0.90 of copy: reached, 0.90 |' \
    '^| exp n=1 .*72 \*\*wrong\*\* | torch 40 |  | wrong: ' \
    '^| exp n=1 | devtensor | error 0.25, at most 0.1; .*the RMS 7.5; .*cpu() 0.125 |' \
    '^| sum n=1 | GB/s | failed (before: 72) |' '^| sum n=1 | devtensor | a / fault |' \
    '^- where n=7'
lacks "$work/rows/report.md" '^- add n=1'
lacks "$work/rows/report.svg" 'exp n=1'
says "$work/rows/report.svg" '1.50 torch' '</svg>'
ROWS=$work/none.txt report "$work/rows"
lacks "$work/rows/report.md" 'not reached'
report "$work/rows"
says "$work/rows/report.md" '^## Rows that were not reached' '^- mm m=4096 n=4096 k=4096 dtype=f32$'

# ---- lines that cannot be read, and a section that fails ----
long=$(awk 'BEGIN { for (i = 0; i < 140000; i++) printf "x" }')
{
    row "good n=1" devtensor 30 true "0.90 copy"
    row "good n=1" copy 30 null "0.90 copy" | sed 's/0.5/0/'           # 1: seconds 0
    row "good n=2" devtensor 30 true "0.90"                            # 2: a floor of one word
    row "good n=2" devtensor 30 true "much copy"                       # 3: a floor without a number
    row "good n=2" devtensor '"30"' true "0.90 copy"                   # 4: work is text
    row "good n=2" devtensor 30 1 "0.90 copy"                          # 5: right is a number
    row "good n=2" devtensor 30 true "0.90 copy" ', "samples": "many"' # 6
    for key in row who unit right floor seconds low work; do           # 7 to 14
        row "good n=2" devtensor 30 true "0.90 copy" | sed "s/\"$key\"/\"other\"/"
    done
    row "good n=2" devtensor NaN true "0.90 copy"                      # 15
    row "good n=2" devtensor 1e999 true "0.90 copy"                    # 16
    echo '{"kind": "step", "state": "passed", "seconds": 1, "detail": ""}' # 17: no name
    echo '{"kind": "step", "step": "s", "seconds": 1, "detail": ""}'       # 18: no state
    echo '{"kind": "step", "step": "s", "state": "passed", "seconds": "1"}' # 19
    echo '{"kind": "kernels", "step": "s", "compiled": "all"}'         # 20
    echo '{"kind": ["row"]}'                                           # 21
    echo '[1, 2]'                                                      # 22: not an object
    printf '\377\376 not JSON\n'                                       # 23
    echo '{"kind": "row", "row": {}, "who": []}'                       # 24
    awk 'BEGIN { for (i = 0; i < 200000; i++) printf "["; print "" }'  # 25: too deep
    printf '{"kind": "row", "row": "cut'                               # 26: the next one is glued
    step odd passed 'lone \ud800 surrogate' | tr -d '\n'
    echo '{"kind": "step", "step": "numeric", "state": "passed", "seconds": 1, "detail": 5}'
    printf '{"kind": "row", "ro'                                       # 27: the call was cut
} | folder odd
printf '==== add\n"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' \
    >"$work/odd/counters.csv"
printf '"0","kernel\000%s","Duration","us","5"\n' "$long" >>"$work/odd/counters.csv"
report "$work/odd"
says "$work/odd/report.md" '^27 lines could not be read' '^| good n=1 | GB/s | 60 |' \
    '^| odd | passed | 1.5 | lone   surrogate |' '^| numeric | passed | 1 | 5 |' \
    '^| add | `kernel x*` | 5 us |'
lacks "$work/odd/report.md" 'good n=2'
rm "$work/odd/counters.csv"
mkdir "$work/odd/counters.csv"
report "$work/odd"
says "$work/odd/report.md" '^| good n=1 | GB/s | 60 |' '^This section failed: IsADirectoryError'
echo "" | folder empty
report "$work/empty" && pass || fail "no lines" "$(cat "$work/said")"
says "$work/empty/report.md" '^# devtensor on an unknown GPU' 'last call was cut'

# ---- calls, steps and kernels ----
call() { # COMMIT
    printf '{"kind": "call", "steps": "gpu rows", "date": "2026-01-0%s", "commit": "c%s", ' $1 $1
    printf '"pack": "p%s", "driver": "d | %s"}\n' $1 $1
    printf '{"kind": "machine", "programs": "build", "cores": 16, "processor": "P%s"}\n' "$1"
}
{
    call 1
    step gpu passed "GPU One"
    step smoke running ""
    step smoke passed "1 passed"
    step end passed ""
} | folder calls
report "$work/calls"
lacks "$work/calls/report.md" 'was cut'
says "$work/calls/report.md" '^# devtensor on GPU One' '^- commit: c1' \
    '^| smoke | passed | 1.5 | 1 passed |'
{
    call 2
    step rows running ""
    printf '{"kind": "kernels", "step": "rows", "compiled": 3, "cached": 40, "seconds": 2.5}\n'
} >>"$work/calls/results.jsonl"
report "$work/calls"
says "$work/calls/report.md" '^\*\*The last call was cut' '^- commit: c2' '^- date: 2026-01-02' \
    '^- pack: p2' '^- cores: 16' '^- driver: d / 2' '^- processor: P2' '^Results of 2 calls' \
    '^| rows | running when the call was cut |' '^| rows | 3 | 40 | 2.5 |'
lacks "$work/calls/report.md" 'c1'
{
    call 3
    step gpu failed "exit code 1: no driver"
    step end failed "no GPU"
} | folder lost
report "$work/lost"
says "$work/lost/report.md" '^# devtensor on an unknown GPU' '^\*\*The last call failed: no GPU\.'
# Older files have no line "call".
{
    call 1 | grep machine
    step end passed ""
    call 2 | grep machine
} | folder older
report "$work/older"
says "$work/older/report.md" 'last call was cut' '^- processor: P2'

# ---- folders ----
row "good n=1" devtensor 30 true "0.90 copy" | folder readonly
report "$work/readonly" "$work/new/out" && [ -f "$work/new/out/report.svg" ] &&
    [ ! -f "$work/readonly/report.md" ] && pass || fail "report.py FOLDER OUT" "$(cat "$work/said")"
# Write permission does not stop root; a folder in the file's place does.
mkdir "$work/readonly/report.md"
(cd "$work" && "$PYTHON" "$gpu/report.py" readonly) >"$work/said" 2>&1
says "$work/said" 'readonly cannot be written .*build/gpu-report'
says "$work/build/gpu-report/report.md" '^| good n=1 | GB/s | 60 |'
report "$work/nothing"
[ $? -eq 2 ] && pass || fail "no results" "$(cat "$work/said")"

# ---- the runner of peers, next to a double of peer_torch.py ----
mkdir -p "$work/peer/torch" "$work/none" "$work/broken/torch"
cp "$gpu/peer.py" "$work/peer/"
: >"$work/peer/torch/__init__.py"
cat >"$work/peer/peer_torch.py" <<'END_OF_DOUBLE'
import os
import signal
import sys
import time
import peer
peer.PATIENCE, peer.LIMIT, peer.TRAINING_LIMIT = 0.05, 1, 5


class Event:
    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass


def broken():
    raise RuntimeError("no working\ncompiler")


class Library:
    name, event, lost = "torch", Event, False

    def first(self):
        return "loss 2.5"

    def seconds(self, first, last):
        return last.at - first.at

    def wait(self):
        if self.lost:
            raise RuntimeError("the GPU is lost")

    def trim(self):
        pass

    def copy(self, traffic):
        return lambda: None

    def lose(self):
        self.lost = True
        broken()

    def case(self, row, form):
        if row.op in ("mnist_099", "lenet_epoch"):
            seconds = 1.2 if row.op == "mnist_099" else 0.06
            return peer.Case(lambda: time.sleep(seconds), clock="wall", once=True)
        if row.op == "sort":  # hangs
            with open(os.environ["PID"], "w") as file:
                file.write(str(os.getpid()))
            return peer.Case(lambda: time.sleep(60))
        if row.op == "copy":
            return peer.Case(lambda: os.kill(os.getpid(), signal.SIGSEGV))
        if row.op == "exp":
            return peer.Case(lambda: None, self.lose if form == "torch-graph" else lambda: 0.0,
                             clock="wall")
        if row.op == "where":
            sys.stderr.write("one line\nthe last words\n")
            sys.stderr.flush()
            os._exit(3)
        if form == "torch-channels_last":
            raise peer.Missing("NHWC")
        if form == "torch-compile":
            return peer.Case(lambda: None, broken)
        if form == "torch-graph":  # fails after the warm-up
            times = iter(range(50))
            return peer.Case(lambda: next(times, None) is None and broken(), lambda: 0.0)
        return peer.Case(lambda: None, lambda: float("inf") if row.op == "chain" else 0.0)
END_OF_DOUBLE
cat >"$work/peer/rows.txt" <<'END_OF_ROWS'
add n=9 | copy torch-compile torch-graph torch-channels_last torch | 0 | 1 copy
exp n=9 | torch torch-graph | 0 | 1 torch
chain n=9 | torch | 0 | 1 torch
where n=9 | torch torch-graph | 0 | 1 copy
copy n=9 | torch | 0 | 1 copy
sort rows=2 columns=2 | torch | 0 | 1 torch
lenet_epoch batch=9 | torch | 0 | 1 torch
mnist_099 batch=9 | torch | 0 | 1 torch
END_OF_ROWS
peer_line() { # ROW WHO PATTERN: in the only line of both
    found=$(grep "\"row\": \"$1.*\"who\": \"$2\"" "$work/peer/out.jsonl")
    [ "$(echo "$found" | grep -c .)" -eq 1 ] && echo "$found" | grep -q -- "$3" && pass ||
        fail "$2 in $1" "not one line like $3: $found"
}
PID=$work/peer/pid "$PYTHON" "$work/peer/peer.py" rows torch "$work/peer/rows.txt" \
    "$work/peer/out.jsonl" 7 >"$work/said" 2>&1
[ $? -eq 1 ] && pass || fail "peer.py" "does not report failures: $(cat "$work/said")"
says "$work/said" 'the last words$' '^where n=9: ended with 3: the last words'
peer_line add torch-compile '"failed": "RuntimeError: no working compiler"'
peer_line add torch-graph '"failed": "RuntimeError: no working compiler"'
peer_line add torch-channels_last '"failed": "missing: NHWC"'
peer_line add torch '"samples": 7.*"right": true'
peer_line add "copy in torch" '"samples": 7'
peer_line chain torch '"error": null.*"right": false'
peer_line exp torch-graph '"failed": "RuntimeError: no working compiler"'
peer_line exp torch '"failed": "RuntimeError: the GPU is lost"'
peer_line where torch '"failed": "ended with 3: the last words"'
peer_line where torch-graph '"failed": "ended with 3: the last words"'
peer_line copy torch '"failed": "ended by signal 11'
peer_line sort torch '"failed": "exceeded its time, '
peer_line lenet_epoch torch '"samples": 3,'
peer_line mnist_099 torch '"samples": 1,'

# Where the parent is killed, its child ends.
gone() { # PID: it ended, or waits to be reaped
    ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null
}
if [ "$(uname -s)" = Linux ]; then
    sed 's/ = 0.05, 1, 5$/ = 0.05, 40, 40/' "$work/peer/peer_torch.py" >"$work/peer/slow.py"
    mv "$work/peer/slow.py" "$work/peer/peer_torch.py"
    rm -f "$work/peer/pid"
    echo 'sort rows=2 columns=2 | torch | 0 | 1 torch' >"$work/peer/slow.txt"
    PID=$work/peer/pid "$PYTHON" "$work/peer/peer.py" rows torch "$work/peer/slow.txt" \
        "$work/peer/slow.jsonl" 7 >"$work/said" 2>&1 &
    parent=$!
    tries=0
    while [ ! -s "$work/peer/pid" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    child=$(cat "$work/peer/pid")
    gone "$child" && fail "the double" "ended before its parent"
    kill -9 "$parent"
    wait "$parent" 2>/dev/null
    tries=0
    until gone "$child" || [ $tries -ge 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    gone "$child" && pass || { fail "the child of a killed peer.py" "runs on"; kill -9 "$child"; }
else
    skip "the child of a killed peer.py" "only Linux ends it"
fi

# ---- libraries that are missing or broken, and the first results ----
peer_first() { # FOLDER LIBRARY EXIT PATTERN: modules of FOLDER come first
    PYTHONPATH=$1 "$PYTHON" "$gpu/peer.py" first "$2" >"$work/said" 2>&1
    code=$?
    [ $code -eq "$3" ] && tail -n 1 "$work/said" | grep -q -- "$4" && pass ||
        fail "peer.py first $2 in $1" "exit code $code, not $3: $(tail -n 1 "$work/said")"
}
printf '%s\n' 'raise ImportError("lib.so is\nmissing")' >"$work/none/torch.py"
echo 'raise OSError("a broken library")' >"$work/broken/torch/__init__.py"
peer_first "$work/none" torch 77 '^torch: not installed (lib.so is missing)$'
peer_first "$work/broken" torch 1 '^torch: the import failed: OSError: a broken library$'
mkdir -p "$work/cupy"
cat >"$work/cupy/cupy.py" <<'END_OF_DOUBLE'
from types import SimpleNamespace
float32 = float16 = uint8 = float


class Array:
    T = 1

    def astype(self, dtype):
        return self

    def __matmul__(self, other):
        return SimpleNamespace(sum=lambda: 12.5)


random = SimpleNamespace(uniform=lambda low, high, shape, dtype: Array())
cuda = SimpleNamespace(Event=None)
END_OF_DOUBLE
peer_first "$work/cupy" cupy 0 '^sum of a product 12.5$'
"$PYTHON" "$work/peer/peer.py" first torch >"$work/said" 2>&1
says "$work/said" '^loss 2.5$'

# ---- the rows ----
try "bench/gpu/rows.txt" "$PYTHON" -c "
import sys
sys.path.insert(0, '$gpu')
import peer
rows = peer.read_rows('$gpu/rows.txt')
names = [row.text for row in rows]
assert len(set(names)) == len(names) > 60, names
for row in rows:
    work, unit = peer.work_of(row)
    least, other = row.floor.split()
    assert work > 0 and float(least) > 0 and other in row.peers.split(), row.text
    if row.op in ('mm', 'conv') and row.dtype in ('f16', 'bf16'):
        assert row.bound == {'f16': 4e-4, 'bf16': 2.5e-3}[row.dtype], row.text
forward = {name for name in names if name.startswith('conv') and 'backward' not in name}
assert {name + ' backward=1' for name in forward} == {
    name for name in names if 'backward=1' in name}
"
finish
