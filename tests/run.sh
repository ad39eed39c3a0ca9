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
# Runs a suite and writes NAME.rc: its exit code and its seconds of CPU time. In a subshell whose
# only child is the suite, so that `times` counts no other.
timed() ( # SUITE NAME
    case $1 in
    *.sh) sh "$1" 2>&1 ;;
    *) "$1" 2>&1 ;;
    esac
    rc=$?
    times >"$BUILD/$2.times"
    awk -v rc=$rc 'NR == 2 {
        split($1, u, "m"); split($2, s, "m"); print rc, int(60 * (u[1] + s[1]) + u[2] + s[2])
    }' "$BUILD/$2.times" >"$BUILD/$2.new"
    mv "$BUILD/$2.new" "$BUILD/$2.rc"
)
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
lane_name() { echo "lane.$(echo "$1" | tr / .)"; }
for suite in "$@"; do ! in_lane "$suite" || rm -f "$BUILD/$(lane_name "$suite")".*; done
(
    export DVT_DOING="$PWD/$BUILD/doing.lane"
    for suite in "$@"; do
        in_lane "$suite" || continue
        timed "$suite" "$(lane_name "$suite")" >"$BUILD/$(lane_name "$suite").log"
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
    how=
    if in_lane "$suite"; then
        name=$(lane_name "$suite")
        how=", in parallel with others"
        while [ ! -f "$BUILD/$name.rc" ] && kill -0 $lane 2>/dev/null; do
            cp "$BUILD/doing.lane" "$DVT_DOING" 2>/dev/null
            sleep 1
        done
        [ -f "$BUILD/$name.rc" ] || echo "1 0" >"$BUILD/$name.rc" # the lane was killed
        tee "$log" <"$BUILD/$name.log"
    else
        name=suite
        timed "$suite" $name | tee "$log"
    fi
    read -r rc seconds <"$BUILD/$name.rc"
    kill $beat
    wait $beat 2>/dev/null
    echo "-- $suite: $seconds s of CPU time$how"
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
