#!/bin/sh
# Runs `make gpu-check` on the simulated driver, from the build to the report: one part of the
# suite, a few unit tests, one epoch on 64 small images. The report must be written only where
# requested, and must list what was run.
# Environment: BUILD, LIBRARY_BUILD (of the programs), MAKE, SIM (directory of the simulated
# driver).
here=$(dirname "$0")
. "$here/../../lib.sh"
: "${BUILD:=build/debug}" "${LIBRARY_BUILD:=build/release}" "${MAKE:=make}" \
    "${SIM:=build/simcuda/lib}"
if [ ! -f "$SIM/libcuda.so.1" ]; then
    skip "gpu-check rehearsed" "no simulated driver in $SIM"
    finish
    exit
fi
work=$BUILD/rehearsal
rm -rf "$work"
mkdir -p "$work/data"

# ---- 64 training and 16 test images, as IDX files ----
images() { # BYTE_OF_COUNT COUNT NAME
    {
        printf "\\0\\0\\010\\003\\0\\0\\0\\$1\\0\\0\\0\\034\\0\\0\\0\\034"
        yes 'the quick brown fox jumps over the lazy dog' | head -c $(($2 * 784))
    } >"$work/data/$3-images-idx3-ubyte"
    {
        printf "\\0\\0\\010\\001\\0\\0\\0\\$1"
        yes | head -n $(($2 / 8)) | while read -r line; do printf '\0\1\2\3\4\5\6\7'; done
    } >"$work/data/$3-labels-idx1-ubyte"
}
images 100 64 train
images 020 16 t10k

before=$(ls bench/results)
env -u CUDA_WORK -u ON_GPU -u SIMCUDA_MEM MAKEFLAGS= BUILD= "$MAKE" -s \
    config="${LIBRARY_BUILD##*/}" gpu-check REHEARSE=1 WORK="$work" \
    SUITE="gpu-fill headers" UNITS="copies_mixed" RUN="--data $work/data --epochs 1 --batch 16" \
    >"$work/said" 2>&1
code=$?
[ $code -eq 0 ] && pass || fail "make gpu-check" "ends with $code: $(tail -n 3 "$work/said")"
report=$(ls "$work"/20*.md 2>/dev/null)
[ -f "$report" ] && pass || { fail "the report" "is not in $work"; finish; exit; }
[ "$before" = "$(ls bench/results)" ] && pass || fail "bench/results" "has changed"
row() { # PART PATTERN: checks the row of a part
    if grep -q "^| $1 | $2 | [0-9]* |\$" "$report"; then
        pass
    else
        fail "the row of $1" "$(grep "^| $1 " "$report")"
    fi
}
row build "1 passed, 0 failed, 0 skipped"
row suite "[1-9][0-9]* passed, 0 failed, [0-9]* skipped"
row units "[1-9][0-9]* passed, 0 failed, [0-9]* skipped"
for tool in memcheck racecheck synccheck initcheck; do
    row "sanitizer-$tool" "0 passed, 0 failed, 1 skipped: the simulated driver .*"
done
row run "1 passed, 0 failed, 0 skipped"
grep -q "^# The tests on .*driver for CUDA" "$report" && pass ||
    fail "the report's title" "$(head -n 1 "$report")"
grep -q "gpu(0)" "$report" && pass || fail "the report's table of devices" "does not name gpu(0)"
finish
