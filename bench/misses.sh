#!/bin/sh
# Simulates the cache misses of float32 products with AVX2, by Valgrind's cachegrind, on a machine
# with the given L1 and L2. Prints bytes from L2 and from beyond L2 for each cycle that the
# multiply-adds take at two FMA instructions per cycle. The machine that runs it does not matter.
# usage: misses.sh [L1/WAYS L2/WAYS]   Environment: BUILD, SIZES
l1=${1:-32K/8} l2=${2:-512K/8}
command -v valgrind >/dev/null 2>&1 || { echo "valgrind is not installed"; exit 0; }
bytes() { echo $(($(echo "${1%/*}" | sed 's/K$/*1024/; s/M$/*1048576/'))); }
misses() { # SIZE TA TB TIMES
    DEVTENSOR_CPU_CACHES=$l1,$l2 valgrind --tool=cachegrind --cache-sim=yes \
        --cachegrind-out-file=/dev/null --I1=32768,8,64 --D1="$(bytes "$l1"),${l1#*/},64" \
        --LL="$(bytes "$l2"),${l2#*/},64" "${BUILD:-build/release}/bench/misses" "$@" 2>&1 |
        tr -d , | awk '/D1  misses/ { d = $4 } /LLd misses/ { l = $4 } END { print d, l }'
}
echo "| product, L1 $l1, L2 $l2 | from L2 | from beyond L2 |"
echo "|---|---|---|"
for n in ${SIZES:-128 256 512 1024}; do
    for form in NN TN NT TT; do
        a=0 b=0
        case $form in T?) a=1 ;; esac
        case $form in ?T) b=1 ;; esac
        once=$(misses "$n" $a $b 1)
        twice=$(misses "$n" $a $b 2)
        echo "$n $form $once $twice" | awk '{
            cycles = $1 * $1 * $1 / 16
            printf "| %d %s | %.1f B | %.1f B |\n", $1, $2, ($5 - $3) * 64 / cycles,
                ($6 - $4) * 64 / cycles }'
    done
done
