#!/bin/sh
# Kills examples/resume at random moments with SIGKILL, and starts it again until it is done. Its
# last line must be that of a run without interruption, on cpu() and on a virtual GPU.
# Environment: BUILD, as the Makefile sets it. SEED.
. tests/lib.sh
program=$PWD/$BUILD/examples/resume
D=$BUILD/resume
STEPS=400
SEED=${SEED:-1}
if [ ! -x "$program" ]; then
    skip resume "$program is not built"
    finish
    exit
fi
random() { # MODULUS: a linear congruential generator
    SEED=$(((SEED * 1103515245 + 12345) % 2147483648))
    drawn=$((SEED / 65536 % $1))
}
for gpus in 0 1; do
    export DEVTENSOR_VIRTUAL_GPUS=$gpus
    rm -rf "$D"
    mkdir -p "$D/whole" "$D/killed"
    wanted=$("$program" "$D/whole" $STEPS | tail -n 1)
    kills=0
    while [ $kills -lt 12 ]; do
        "$program" "$D/killed" $STEPS >"$D/said" 2>&1 &
        child=$!
        random 40
        sleep "0.0$((drawn / 10))$((drawn % 10))" 2>/dev/null || sleep 1
        if kill -9 $child 2>/dev/null; then kills=$((kills + 1)); fi
        wait $child 2>/dev/null
        grep -q "^loss" "$D/said" && break # it was done before
    done
    got=$("$program" "$D/killed" $STEPS | tail -n 1)
    if [ -n "$wanted" ] && [ "$got" = "$wanted" ] && [ $kills -gt 0 ]; then pass; else
        fail "resumed with $gpus virtual GPUs" "after $kills kills '$got', expected '$wanted'"
    fi
    left=$(find "$D/killed" -name 'checkpoint-*' | wc -l)
    if [ "$left" -ge 2 ] && [ "$left" -le 3 ]; then pass; else
        fail "the best checkpoints" "$left files are left, expected 2 or 3"
    fi
    echo "   $kills kills with $gpus virtual GPUs"
done
rm -rf "$D"
finish
