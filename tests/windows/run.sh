#!/bin/sh
# Compiles the unit tests for 64-bit Windows and runs them by Wine, where a MinGW compiler and Wine
# are installed. They test threads, files, the environment and the choice of the ISA target on
# Windows. The library uses Windows threads. The tests use POSIX threads, which MinGW's thread model
# "posix" links by itself and its default model "win32" does not.
# `make test` runs the tests that depend on the system: threads, memory, files, the environment,
# printing, sizes of types. DVT_TEST_FULL=1 (`make test-long`) runs all.
. tests/lib.sh
CROSS=${CROSS:-x86_64-w64-mingw32-gcc}
D=$BUILD/windows
EMULATOR=${EMULATOR:-}
for name in wine64 /usr/lib/wine/wine64 wine; do
    [ -n "$EMULATOR" ] || ! has "$name" || EMULATOR=$name
done
if ! has "$CROSS" || [ -z "$EMULATOR" ]; then
    skip windows "$CROSS and Wine (wine64) are not both installed"
    finish
    exit 0
fi
rm -rf "$D"
mkdir -p "$D"
printf '#include <pthread.h>\nint main(void) { return !pthread_self(); }\n' >"$D/probe.c"
THREADS=none
for flag in "" -lwinpthread -lpthread; do
    if [ "$THREADS" = none ] &&
        $CROSS -static "$D/probe.c" -o "$D/probe.exe" $flag >"$D/probe.log" 2>&1; then
        THREADS=$flag
    fi
done
if [ "$THREADS" = none ]; then
    skip windows \
        "the tests need POSIX threads, and $CROSS has no libwinpthread: $(head -n 1 "$D/probe.log")"
    finish
    exit 0
fi
export WINEDEBUG=-all WINEPREFIX="$PWD/$D/wine"

flags="-std=gnu11 -I. -Itests"
SUBJECTS="arrays base call_sites conv conversions copies core data data_parallel elementwise faults
heap idx index inflate loader matmul messages npy npz_files params pool prewarm print progress
random random_engines reduce save_load scopes sort thread_pool thread_pool_plain threads
threads_devices trainer views virtual virtual_failing warnings"
files=$(for subject in $SUBJECTS; do echo "tests/unit/test_$subject.c"; done)
level=0 # of the host's code; kernels are optimized at every level
[ -z "${DVT_TEST_FULL:-}" ] || files=$(ls tests/unit/*.c) level=1
# This processor cannot run the kernels for AVX-512: leaves out compiling them.
grep -q avx512 /proc/cpuinfo 2>/dev/null || flags="$flags -DDEVTENSOR_NO_AVX512"
build() {
    $CROSS $flags -O$level -c tests/implementation.c -o "$D/devtensor.o" &&
        $CROSS $flags -O0 -c tests/dvt_test.c -o "$D/dvt_test.o" || return 1
    for file in $files; do
        $CROSS $flags -O0 -c "$file" -o "$D/$(basename "$file" .c).o" || return 1
    done
    $CROSS -static "$D"/*.o -o "$D/tests.exe" $THREADS
}
if ! build >"$D/build.log" 2>&1; then
    fail windows "it does not compile"
    tail -n 25 "$D/build.log"
    finish
    exit 1
fi
# Saved files are synced. Wine finds the directory on the current drive.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
run() { # lines of the output end in CR LF
    "$EMULATOR" "$D/tests.exe" >"$D/tests.log" 2>&1
    code=$?
    tr -d '\r' <"$D/tests.log"
    return $code
}
script windows run
finish
