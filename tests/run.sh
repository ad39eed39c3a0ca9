#!/bin/sh
# Runs suites in sequence: programs, or scripts that end in .sh. Each must end in the line
# "N passed, N failed, N skipped", else it has crashed and counts as a failure. The last line is the
# sum. Prints the CPU time of each suite, because it does not depend on the load of the machine.
# When a suite prints nothing for 50 s, prints its current step.
# usage: run.sh SUITE...
: "${BUILD:=build}"
# Results do not depend on a GPU in the machine: only tests/cuda uses it. DEVTENSOR_CUDA=1 lets all
# suites use it.
export DEVTENSOR_CUDA="${DEVTENSOR_CUDA:-0}"
mkdir -p "$BUILD"
passed=0
failed=0
skipped=0
processor_seconds() { # of all children so far, into `spent`; `times` must not run in a subshell
    times >"$BUILD/${1:-suite}.times"
    spent=$(awk 'NR == 2 {
        split($1, u, "m"); split($2, s, "m"); printf "%d", 60 * (u[1] + s[1]) + u[2] + s[2]
    }' "$BUILD/${1:-suite}.times")
}
export DVT_DOING="$PWD/$BUILD/doing" # see lib.sh
heartbeat() {
    seen=
    waited=0
    while sleep 50 >/dev/null 2>&1; do
        waited=$((waited + 50))
        size=$(wc -c <"$log")
        [ "$size" != "$seen" ] ||
            echo "   $suite is running after $waited s, at $(tail -n 1 "$DVT_DOING")"
        seen=$size
    done
}
# Suites that use one processor run in parallel with the others. Their output is printed in
# their turn.
LANE="tests/neon/run.sh tests/windows/run.sh"
in_lane() { case " $LANE " in *" $1 "*) true ;; *) false ;; esac; }
lane_log() { echo "$BUILD/lane.$(echo "$1" | tr / .)"; }
for suite in "$@"; do ! in_lane "$suite" || rm -f "$(lane_log "$suite")".*; done
(
    export DVT_DOING="$PWD/$BUILD/doing.lane"
    for suite in "$@"; do
        in_lane "$suite" || continue
        out=$(lane_log "$suite")
        processor_seconds lane
        before=$spent
        sh "$suite" >"$out.log" 2>&1
        rc=$?
        processor_seconds lane
        echo "$rc $((spent - before))" >"$out.new" && mv "$out.new" "$out.rc"
    done
) &
lane=$!
for suite in "$@"; do
    echo "== $suite"
    log=$BUILD/suite.log
    : >"$log"
    echo "its beginning" >"$DVT_DOING"
    heartbeat &
    beat=$!
    processor_seconds
    before=$spent
    if in_lane "$suite"; then
        out=$(lane_log "$suite")
        while [ ! -f "$out.rc" ] && kill -0 $lane 2>/dev/null; do
            cp "$BUILD/doing.lane" "$DVT_DOING" 2>/dev/null
            sleep 1
        done
        [ -f "$out.rc" ] || echo "1 0" >"$out.rc" # the lane was killed
        tee "$log" <"$out.log"
        read -r rc seconds <"$out.rc"
        kill $beat
        wait $beat 2>/dev/null
        echo "-- $suite: $seconds s of CPU time, in parallel with others"
    else
        case $suite in
        *.sh) { sh "$suite" 2>&1; echo $? >"$BUILD/suite.rc"; } | tee "$log" ;;
        *) { "$suite" 2>&1; echo $? >"$BUILD/suite.rc"; } | tee "$log" ;;
        esac
        read -r rc <"$BUILD/suite.rc"
        kill $beat
        wait $beat 2>/dev/null
        processor_seconds
        echo "-- $suite: $((spent - before)) s of CPU time"
    fi
    number='\([0-9][0-9]*\)'
    counts=$(tail -n 1 "$log" |
        sed -n "s/^$number passed, $number failed, $number skipped\$/\1 \2 \3/p")
    if [ -z "$counts" ]; then
        echo "FAIL $suite: no closing line, exit code $rc"
        counts="0 1 0"
    fi
    set -- $counts
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then
        echo "FAIL $suite: exit code $rc although nothing failed"
        set -- "$1" 1 "$3"
    fi
    passed=$((passed + $1))
    failed=$((failed + $2))
    skipped=$((skipped + $3))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
