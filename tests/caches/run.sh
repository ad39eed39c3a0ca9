#!/bin/sh
# Runs tests of products and convolutions as on machines with other caches. Blocks follow from the
# caches; the bits of results must not. The tests compare every bit. DVT_TEST_FULL=1 (`make
# test-long`) adds the caches of a common desktop processor to the small ones.
# Environment: BUILD, or the directory of isa/tests in OBJECTS.
. tests/lib.sh
for caches in ${DVT_TEST_FULL:+32K/8,512K/8,32M/16} 16K/4,128K/4; do
    for text in chains dots convolutions_at convolutions_that bytes_are_exact winograd_is; do
        script "$text with $caches" env DEVTENSOR_CPU_CACHES=$caches \
            "${OBJECTS:-$BUILD}/isa/tests" $text
    done
done
finish
