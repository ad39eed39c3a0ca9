#!/bin/sh
# Runs the tests of the ISA targets on 64-bit ARM, NEON and plain C, under an emulator. Skips the
# slowest tests and takes samples in others, because ARM machines run them in `make test`;
# DVT_TEST_FULL=1 runs them too.
. tests/lib.sh
CROSS=${CROSS:-aarch64-linux-gnu-gcc}
EMULATOR=${EMULATOR:-qemu-aarch64}
LONG="winograd_is_within_its_bound_on_all_targets_and_threads convolutions_that_are_cut
large_products_are_chains_too results_that_no_cache_keeps_are_chains_too
products_of_every_layout_are_chains_on_all_targets_and_threads functions_are_close_to_exact_ones
functions_of_double_are_close_to_exact_ones launches_run_as_they_were_planned
bias_and_relu_follow_products transposed_products_are_chains_too relu_follows_every_convolution
functions_of_two_doubles_are_close_to_exact_ones functions_of_double_near_special_places
batches_of_products_share_factors isa_reduces_wide_columns isa_reduces_long_rows_by_fixed_chunks"
D=$BUILD/neon
for tool in "$CROSS" "$EMULATOR"; do
    if ! has "$tool"; then
        skip neon "$tool is not installed"
        finish
        exit 0
    fi
done
rm -rf "$D"
mkdir -p "$D"

flags="-std=gnu11 -O1 -DDVTI_FN=extern -DDEVTENSOR_NO_NN -DDEVTENSOR_NO_FORMATS -DDEVTENSOR_NO_CUDA"
flags="$flags -Isrc -I. -Itests"
build() {
    printf '#define DEVTENSOR_IMPLEMENTATION\n#include "devtensor_spine.h"\n' >"$D/library.c"
    $CROSS $flags -c "$D/library.c" -o "$D/library.o" &&
        $CROSS $flags -O0 -c tests/dvt_test.c -o "$D/dvt_test.o" || return 1
    for file in tests/isa/*.c; do
        $CROSS $flags -c "$file" -o "$D/$(basename "$file" .c).o" || return 1
    done
    $CROSS -static "$D"/*.o -o "$D/tests" -lm -lpthread &&
        printf '#include "devtensor.h"\n#include <stdio.h>\n' >"$D/isa.c" &&
        echo 'int main(void) { return puts(dvt_cpu_isa()) < 0; }' >>"$D/isa.c" &&
        $CROSS $flags "$D/isa.c" "$D/library.o" -static -o "$D/isa" -lm -lpthread
}
if ! build >"$D/build.log" 2>&1; then
    fail "neon" "it does not compile"
    tail -n 25 "$D/build.log"
    finish
    exit 1
fi
isa=$("$EMULATOR" "$D/isa")
if [ "$isa" = neon ]; then
    pass
else
    fail "neon" "the best ISA target is \"$isa\", expected \"neon\""
fi
names=$("$EMULATOR" "$D/tests" --list | grep -E '^[a-z_0-9]+$')
if [ -z "${DVT_TEST_FULL:-}" ]; then
    for name in $LONG; do
        names=$(echo "$names" | grep -vx "$name")
        skip "neon/$name" "it takes too long under an emulator; DVT_TEST_FULL=1"
    done
fi
export DVT_TEST_EMULATED=1 # see tests/isa/isa.h
script neon env DVT_TEST_BITS="$D/bits.emulated" "$EMULATOR" "$D/tests" $names

# Compares with the bits of this machine's processor, if its tests have been built.
if [ -x "$BUILD/isa/tests" ]; then
    env DVT_TEST_BITS="$D/bits.here" "$BUILD/isa/tests" every_kernel_at_the_edge \
        bits_of_operations >"$D/bits.log" 2>&1
    sort "$D/bits.here" >"$D/bits.1"
    sort "$D/bits.emulated" >"$D/bits.2"
    if [ -s "$D/bits.1" ] && cmp -s "$D/bits.1" "$D/bits.2"; then pass; else
        fail "neon bits" "$(diff "$D/bits.1" "$D/bits.2" | tr '\n' ' ')"
    fi
else
    skip "neon bits" "no $BUILD/isa/tests to compare with"
fi
finish
