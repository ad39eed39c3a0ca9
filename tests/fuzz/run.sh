#!/bin/sh
# Fuzzes every reader and parser with libFuzzer under ASan and UBSan, starting with the inputs in
# corpus/. Each target runs SECONDS_EACH seconds (20), two at a time. The library is compiled once,
# below build/fuzz.
#   sh tests/fuzz/run.sh [TARGET...]         SECONDS_EACH=3600 for hours; findings: build/fuzz/found
#   sh tests/fuzz/run.sh --keep TARGET...    adds new inputs of a previous run to corpus/, minimized
# Without clang and libFuzzer, only `make test` replays the inputs (build/.../fuzz/tests).
cd "$(dirname "$0")/../.." || exit 1
: "${BUILD:=build/release}" "${SECONDS_EACH:=20}" "${CLANG:=clang}"
mkdir -p "$BUILD"
. tests/lib.sh
F=build/fuzz
keep=
[ "$1" = --keep ] && keep=1 && shift
targets=${*:-$(sed -n 's/^DVT_FUZZ(\(.*\)) {$/\1/p' tests/fuzz/*.c)}

programs() { # random programs of API calls
    [ -n "$keep" ] || [ ! -f tests/fuzz/programs/run.sh ] ||
        script "tests/fuzz/programs" sh tests/fuzz/programs/run.sh
}

mkdir -p "$F/found"
probe='int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }'
if ! has "$CLANG" || ! echo "$probe" |
    "$CLANG" -fsanitize=fuzzer,address,undefined -x c - -o "$F/probe" 2>/dev/null; then
    skip fuzz "clang with libFuzzer is not installed (on Debian: clang, libclang-rt-dev)"
    programs
    finish
    exit
fi

# Kernels are not fuzzed: they are compiled without sanitizers and vectors, which is 3x faster.
FLAGS="-std=gnu11 -gline-tables-only -O1 -DDVTI_FN=extern -DDEVTENSOR_NO_CUDA -DDEVTENSOR_NO_SIMD"
FLAGS="$FLAGS -Isrc -I. -Itests"
SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
zlib=
if echo '#include <zlib.h>
int main(void) { return zlibVersion() == 0; }' | "$CLANG" -x c - -lz -o "$F/probe" 2>/dev/null; then
    zlib="-DDVT_FUZZ_ZLIB -lz"
else
    skip "gzip against zlib" "zlib is not installed (zlib1g-dev)"
fi
{
    echo "CC = $CLANG"
    echo "FLAGS = $FLAGS -MMD -MP"
    echo "S = $SANITIZE"
    echo "ZLIB = $zlib"
    echo "SOURCES = \$(shell find src -name '*.c' -not -path 'src/3_cuda/*')"
    echo "LIBRARY = \$(patsubst src/%.c,$F/%.o,src/3_cuda/dvt_cuda_off.c \$(SOURCES))"
    echo "LINK = -Wl,--wrap=dvti_fd_read -lm -ldl -lpthread"
    echo "all: $(for t in $targets; do echo "$F/$t"; done | tr '\n' ' ')"
    echo "$F/3_cpu/%.o: src/3_cpu/%.c"
    echo "	@mkdir -p \$(@D); \$(CC) \$(FLAGS) -c \$< -o \$@"
    echo "$F/%.o: src/%.c"
    echo "	@mkdir -p \$(@D); \$(CC) \$(FLAGS) \$(S) -fsanitize=fuzzer-no-link -c \$< -o \$@"
    echo "$F/%: tests/fuzz/%.c tests/fuzz/fuzz.h \$(LIBRARY)"
    echo "	@\$(CC) \$(FLAGS) \$(S) -fsanitize=fuzzer -DDVT_TEST_SPINE \$< \$(LIBRARY) -o \$@ \\"
    echo "		\$(LINK) \$(ZLIB)"
    echo ".SECONDARY:"
    echo "-include \$(shell find $F -type f -name '*.d' 2>/dev/null)"
} >"$F/Makefile"
if ! "${MAKE:-make}" -j2 -f "$F/Makefile" all >"$F/build.log" 2>&1; then
    fail "fuzz: compiling" "$(grep -m 1 -i error "$F/build.log")"
    finish
    exit 1
fi

"${CC:-cc}" -o "$F/corpus" tests/fuzz/corpus.c || exit 1
for target in $targets; do
    mkdir -p "$F/inputs/$target"
    "$F/corpus" unpack "tests/fuzz/corpus/$target.txt" "$F/inputs/$target"
done

if [ -n "$keep" ]; then
    for target in $targets; do
        rm -rf "$F/small" && mkdir -p "$F/small"
        "$F/$target" -merge=1 -max_len=4096 "$F/small" "$F/inputs/$target" \
            >"$F/$target.log" 2>&1 || exit 1
        "$F/corpus" pack "$F/small" "tests/fuzz/corpus/$target.txt"
    done
    exit
fi

fuzz() { # target
    ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
        "$F/$1" -max_total_time="$SECONDS_EACH" -rss_limit_mb=2048 -malloc_limit_mb=512 \
        -timeout=25 -max_len=4096 -print_final_stats=1 -artifact_prefix="$F/found/$1-" \
        "$F/inputs/$1" >"$F/$1.log" 2>&1
    echo $? >"$F/$1.rc"
}
report() { # target
    wait "$2"
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$F/$1.log")
    if [ "$(cat "$F/$1.rc")" = 0 ]; then
        pass
        echo "$1: $runs inputs, no finding"
    else
        fail "fuzz $1" "after ${runs:-some} inputs; the input is in $F/found"
        grep -v '^#\|^INFO' "$F/$1.log" | head -n 40
    fi
}
before=
for target in $targets; do
    rm -f "$F/$target.rc"
    fuzz "$target" &
    [ -z "$before" ] || report "$before" "$before_id"
    before=$target
    before_id=$!
    # the next one starts when the first of this pair has ended
done
[ -z "$before" ] || report "$before" "$before_id"
programs
finish
