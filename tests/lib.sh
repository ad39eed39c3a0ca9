# Shared by the test scripts. A script sources this file, calls pass, fail, skip or try for each
# case, and ends with finish.
passed=0
failed=0
skipped=0

pass() { passed=$((passed + 1)); }
fail() { # name, and the observed result
    failed=$((failed + 1))
    echo "FAIL $1${2:+: $2}"
}
skip() { # name, reason
    skipped=$((skipped + 1))
    echo "SKIP $1: $2"
}
# Records the current step, which run.sh prints for a suite without output.
doing() { [ -z "${DVT_DOING:-}" ] || echo "$1" >"$DVT_DOING"; }
# try NAME COMMAND...: passes when the command succeeds, else prints the end of its output.
try() {
    try_name=$1
    shift
    doing "$try_name"
    if "$@" >"$BUILD/try.$$.log" 2>&1; then
        pass
    else
        fail "$try_name" "exit code $?"
        tail -n 25 "$BUILD/try.$$.log"
    fi
}
# script NAME COMMAND...: runs a command with its own closing line, and adds its counts to ours.
script() {
    script_name=$1
    shift
    doing "$script_name"
    "$@" >"$BUILD/script.$$.log" 2>&1
    code=$?
    script_log=$BUILD/script.$$.log
    closing=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$script_log" | tail -n 1)
    grep -v "^$closing\$" "$script_log"
    counts=$(echo "$closing" |
        sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ -z "$counts" ]; then
        fail "$script_name" "exit code $code: $(tail -n 1 "$BUILD/script.$$.log")"
        return
    fi
    set -- $counts
    passed=$((passed + $1))
    failed=$((failed + $2))
    [ "$code" -eq 0 ] || [ "$2" -ne 0 ] ||
        fail "$script_name" "exit code $code although nothing failed"
    skipped=$((skipped + $3))
}
finish() {
    rm -f "$BUILD/try.$$.log" "$BUILD/script.$$.log"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
has() { command -v "$1" >/dev/null 2>&1; }
# The compiler for a private copy of the library without optimization, where a suite tests something
# else than the compiler: clang takes half the time of GCC.
quick_cc() { if has clang; then echo clang; else echo "$CC"; fi; }
