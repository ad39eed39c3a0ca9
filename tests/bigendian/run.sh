#!/bin/sh
# Tests a big-endian machine: s390x under an emulator. Runs the unit tests that depend on byte order
# (files, random numbers, conversions, copies, printing, indexing). Then compares the bits of the
# plain ISA target's operations with those of this machine's best ISA target. `make test-long` runs
# it; alone: sh tests/bigendian/run.sh. CROSS and EMULATOR select other tools.
. tests/lib.sh
CROSS=${CROSS:-s390x-linux-gnu-gcc}
EMULATOR=${EMULATOR:-qemu-s390x}
BUILD=${BUILD:-build/release}
D=$BUILD/bigendian
for tool in "$CROSS" "$EMULATOR"; do
    if ! has "$tool"; then
        skip bigendian "$tool is not installed"
        finish
        exit 0
    fi
done
rm -rf "$D"
mkdir -p "$D"
UNITS="arrays arrays_by_content conversions copies copy_bits csv elementwise elementwise_binary
 float_mode gguf idx image image_files index inflate load_map load_old_names matmul npy npz
 npz_files params print random random_engines reduce safetensors save_load scan sort topk views"
BITS="bits_of_operations"

flags="-std=gnu11 -O1 -DDVTI_FN=extern -Isrc -I. -Itests"
objects() { # compiles files of tests/, named without .c
    for file in "$@"; do
        $CROSS $flags -DDVT_TEST_SPINE -c "tests/$file.c" -o "$D/$(basename "$file").o" || return 1
    done
}
build() {
    printf '#define DEVTENSOR_IMPLEMENTATION\n#include "devtensor_spine.h"\n' >"$D/library.c"
    $CROSS $flags -c "$D/library.c" -o "$D/library.o" && objects dvt_test isa/test_bits ||
        return 1
    units=""
    for unit in $UNITS; do
        objects "unit/test_$unit" || return 1
        units="$units $D/test_$unit.o"
    done
    $CROSS -static "$D/dvt_test.o" $units "$D/library.o" -o "$D/units" -lm -lpthread &&
        $CROSS -static "$D/dvt_test.o" "$D/test_bits.o" "$D/library.o" -o "$D/bits" -lm -lpthread
}
if ! build >"$D/build.log" 2>&1; then
    fail "bigendian" "it does not compile"
    tail -n 25 "$D/build.log"
    finish
    exit 1
fi
script bigendian "$EMULATOR" "$D/units"
script bigendian env DVT_TEST_BITS="$D/bits.emulated" "$EMULATOR" "$D/bits" $BITS

# Compares with the bits of this machine's processor, if its tests have been built.
if [ -x "$BUILD/isa/tests" ]; then
    env DVT_TEST_BITS="$D/bits.here" "$BUILD/isa/tests" $BITS >"$D/bits.log" 2>&1
    sort "$D/bits.here" >"$D/bits.1"
    sort "$D/bits.emulated" >"$D/bits.2"
    if [ -s "$D/bits.1" ] && cmp -s "$D/bits.1" "$D/bits.2"; then pass; else
        fail "bigendian bits" "$(diff "$D/bits.1" "$D/bits.2" | tr '\n' ' ')"
    fi
else
    skip "bigendian bits" "no $BUILD/isa/tests to compare with"
fi
finish
