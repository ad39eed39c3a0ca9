#!/bin/sh
# Runs suites: programs, or scripts that end in .sh. Each must end in the line "N passed, N failed,
# N skipped", else it has crashed and counts as a failure. The last line is the sum. Prints the CPU
# time of each suite, because it does not depend on the load of the machine.
# As many suites run at a time as there are processors, or JOBS. They start in the given order, and
# their output is printed in that order. A suite gets JOBS=1; the last one gets all, because the
# others have ended or will soon.
# When a suite prints nothing for 50 s, prints its current step.
# usage: run.sh SUITE...
: "${BUILD:=build}"
# Results do not depend on a GPU in the machine: only tests/cuda uses it. DEVTENSOR_CUDA=1 lets all
# suites use it.
export DEVTENSOR_CUDA="${DEVTENSOR_CUDA:-0}"
JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
D=$BUILD/suites
rm -rf "$D"
mkdir -p "$D"
passed=0
failed=0
skipped=0
for last in "$@"; do :; done
name_of() { echo "$1" | tr / .; }
# Runs a suite and writes NAME.rc: its exit code and its seconds of CPU time. In a subshell whose
# only child is the suite, so that `times` counts no other.
timed() ( # SUITE NAME JOBS
    JOBS=$3
    DVT_DOING=$PWD/$D/$2.doing # see lib.sh
    export JOBS DVT_DOING
    case $1 in
    *.sh) sh "$1" ;;
    *) "$1" ;;
    esac >"$D/$2.log" 2>&1
    rc=$?
    times >"$D/$2.times"
    awk -v rc=$rc 'NR == 2 {
        split($1, u, "m"); split($2, s, "m"); print rc, int(60 * (u[1] + s[1]) + u[2] + s[2])
    }' "$D/$2.times" >"$D/$2.new"
    mv "$D/$2.new" "$D/$2.rc"
)
worker() { # runs the suites that no other worker has taken
    for suite in "$@"; do
        name=$(name_of "$suite")
        mkdir "$D/$name.taken" 2>/dev/null || continue
        jobs=1
        [ "$suite" != "$last" ] || jobs=$JOBS
        timed "$suite" "$name" "$jobs"
    done
}
workers=
while [ "$(echo $workers | wc -w)" -lt "$JOBS" ]; do
    worker "$@" &
    workers="$workers $!"
done
trap 'trap - INT; kill 0' INT # background processes ignore it
someone_works() {
    for worker in $workers; do ! kill -0 "$worker" 2>/dev/null || return 0; done
    return 1
}
# Prints what a suite has printed since the last call.
show() {
    size=$(($(wc -c <"$log")))
    [ "$size" -gt "$shown" ] || return 1
    tail -c +$((shown + 1)) "$log" | head -c $((size - shown))
    shown=$size
}
for suite in "$@"; do
    echo "== $suite"
    name=$(name_of "$suite")
    log=$D/$name.log
    shown=0
    quiet=0
    waited=0
    while [ ! -f "$D/$name.rc" ] && someone_works; do
        sleep 1
        waited=$((waited + 1))
        quiet=$((quiet + 1))
        if [ -f "$log" ] && show; then quiet=0; fi
        if [ $quiet -ge 50 ]; then
            doing=$(tail -n 1 "$D/$name.doing" 2>/dev/null)
            echo "   $suite is running after $waited s, at ${doing:-its beginning}"
            quiet=0
        fi
    done
    [ ! -f "$log" ] || show
    [ -f "$D/$name.rc" ] || echo "1 0" >"$D/$name.rc" # its worker was killed
    read -r rc seconds <"$D/$name.rc"
    echo "-- $suite: $seconds s of CPU time"
    number='\([0-9][0-9]*\)'
    counts=$(tail -n 1 "$log" 2>/dev/null |
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
