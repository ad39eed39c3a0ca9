#!/bin/sh
# The simulated CUDA driver and compiler: the suite of each half, below a build folder of its own.
. tests/lib.sh
: "${BUILD:=build}"
mkdir -p "$BUILD/simcuda"
for part in tests/simcuda/*/run.sh; do
    echo "-- $part"
    script "$part" env BUILD="$BUILD/simcuda" sh "$part"
done
finish
