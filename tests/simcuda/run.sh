#!/bin/sh
# The simulated CUDA driver and compiler: the suite of each part, each in its own build directory.
. tests/lib.sh
: "${BUILD:=build}"
mkdir -p "$BUILD/simcuda"
for part in tests/simcuda/*/run.sh; do
    echo "-- $part"
    script "$part" env BUILD="$BUILD/simcuda" sh "$part"
done
finish
