#!/bin/sh
# Runs random programs of API calls under AddressSanitizer and UndefinedBehaviorSanitizer; see
# README.md here. SECONDS_EACH: time for new programs (40). SEED: the first seed (from the time).
# LIBFUZZER=1: guided by coverage, with clang.
cd "$(dirname "$0")/../../.." || exit 1
: "${CC:=cc}" "${BUILD:=build/release}" "${LIBS:=-lm -ldl -lpthread}" "${SECONDS_EACH:=40}" \
    "${SEED:=$(date +%s)000}"
mkdir -p "$BUILD"
. tests/lib.sh
here=tests/fuzz/programs
out=$BUILD/fuzz-programs
mkdir -p "$out"
sanitize="-fsanitize=address,undefined -fno-sanitize-recover=all"
harness="-fsanitize=address -fwrapv"
compiler=$CC
if [ -n "$LIBFUZZER" ]; then
    compiler=clang
    sanitize="-fsanitize=fuzzer-no-link,address"
    harness="$sanitize -fwrapv -DDVT_FUZZ_LIBFUZZER"
    out=$out/libfuzzer
    mkdir -p "$out"
fi
if ! echo 'int main(void) { return 0; }' |
    $compiler $sanitize -x c - -o "$out/probe" 2>/dev/null || ! "$out/probe"; then
    skip "fuzz programs" "$compiler has no sanitizers here"
    finish
    exit
fi

compile() { # OBJECT SOURCE FLAGS...
    object=$1
    source=$2
    shift 2
    $compiler -std=gnu11 -O1 -g "$@" -fno-omit-frame-pointer -Isrc -I. -c "$source" -o "$object" \
        >"$out/compile.log" 2>&1 && return
    fail "$source does not compile" ""
    cat "$out/compile.log"
    finish
    exit 1
}
if [ -n "$LIBFUZZER" ]; then
    printf '#define DEVTENSOR_IMPLEMENTATION\n#include "devtensor_spine.h"\n' >"$out/library.c"
    [ -f "$out/library.o" ] && [ -z "$(find src -newer "$out/library.o" | head -n 1)" ] ||
        compile "$out/library.o" "$out/library.c" $sanitize
    objects=$out/library.o
else # the objects of the unit tests' build with the same sanitizers
    if ! ${MAKE:-make} -s config=split-sanitized library >"$out/compile.log" 2>&1; then
        fail "the library does not compile" "$(grep -m 1 -i error "$out/compile.log")"
        finish
        exit 1
    fi
    objects=$(find src -name '*.c' | sed 's|^src/\(.*\)[.]c$|build/split-sanitized/src/\1.o|')
fi
for source in "$here"/*.c; do
    object=$out/$(basename "$source" .c).o
    compile "$object" "$source" $harness -Wall -Wextra
    objects="$objects $object"
done
if [ -n "$LIBFUZZER" ]; then
    $compiler -fsanitize=fuzzer,address $objects -o "$out/programs" $LIBS
    mkdir -p "$out/corpus"
    if "$out/programs" -max_total_time="$SECONDS_EACH" -max_len=896 -artifact_prefix="$out/" \
        "$out/corpus" >"$out/log" 2>&1; then
        pass
    else
        fail "fuzz programs under libFuzzer" "see $out/log"
    fi
    tail -n 1 "$out/log"
    finish
    exit
fi
$compiler $sanitize $objects -o "$out/programs" $LIBS

one() { # NAME ARGUMENTS...
    name=$1
    shift
    script "fuzz programs, $name" "$out/programs" --save "$out/last.txt" "$@"
    tail -n 40 "$BUILD/script.$$.log" | grep -q "ERROR: AddressSanitizer\|runtime error" || return
    echo "the program that crashed, $out/last.txt; shrink it with $out/programs --shrink:"
    cat "$out/last.txt"
}
one corpus --replay "$here"/corpus/*.txt
one "seeds from $SEED" --seed "$SEED" --seconds "$SECONDS_EACH"
finish
