#!/bin/sh
# Runs the programs of examples/ (or PROGRAMS) with 0 and with 2 virtual GPUs (or GPUS), in an empty
# directory, and checks their output.
# Environment: BUILD, CXX, MAKE, as the Makefile sets them.
. tests/lib.sh
programs=$(cd "$BUILD/examples" && pwd) || exit 1
D=$BUILD/examples/empty
rm -rf "$D"
mkdir -p "$D"
output=$(cd "$D" && pwd)/output.txt
run() { # GPUS PROGRAM ARGUMENTS...
    gpus=$1
    shift
    (cd "$D" && DEVTENSOR_VIRTUAL_GPUS=$gpus DEVTENSOR_DATA= "$programs/$@" >"$output" 2>&1)
}
prints() { # checks that a line of the last run's output matches
    if grep -q -- "$1" "$output"; then pass; else
        fail "$name" "does not print '$1'"
        tail -n 5 "$output"
    fi
}
PROGRAMS=${PROGRAMS:-hello residual cplusplus generate run}
for program in $PROGRAMS; do
    if [ $program = cplusplus ] && ! has "$CXX"; then
        skip examples/cplusplus.cpp "$CXX is not installed"
        continue
    fi
    for gpus in ${GPUS:-0 2}; do
        name="examples/$program with $gpus virtual GPUs"
        arguments=
        [ $program = run ] && arguments="--epochs 1 --xavier --curve curve.svg"
        [ $program = generate ] && arguments=$PWD/tests/golden/torch/transformer.safetensors
        run $gpus $program $arguments
        code=$?
        if [ $code -ne 0 ]; then
            fail "$name" "ends with $code"
            tail -n 5 "$output"
            continue
        fi
        pass
        device="cpu(0)"
        [ $gpus = 2 ] && device="gpu(0)"
        case $program in
        hello) prints "<NDArray 2x3 @$device>" ;;
        residual) prints "^loss 0[.]" ;;
        generate) prints "^The library [a-z]" ;;
        cplusplus)
            prints "caught: dvt_matmul" && prints "^step 60, loss 0[.]00" &&
            prints "arrays alive: 0" ;;
        run)
            prints "dvt_add(x, y) says:"
            prints "run.c:[0-9]"
            prints "DRAWN"
            if [ $gpus = 2 ]; then prints "on .gpu(0), gpu(1)."; else prints "on .cpu(0)."; fi
            prints "test accuracy 0[.][3-9]"
            prints "removed again (--keep leaves it).*its first predictions"
            try "$name: nothing is left behind" test ! -e "$D/lenet.params"
            try "$name: the curve is an image" grep -q "</svg>" "$D/curve.svg"
            ;;
        esac
    done
done
case " $PROGRAMS " in
*" run "*)
    name="examples/run --help"
    run 0 run --help
    try "$name" test $? -eq 0
    prints "usage: run"
    name="examples/run --keep"
    run 0 run --epochs 1 --batch 1000 --keep
    prints "saved to lenet.params, loaded"
    try "$name: the file" test -s "$D/lenet.params"
    ;;
esac
name="make examples"
"$MAKE" -s config="${BUILD##*/}" examples >"$output" 2>&1
prints "The programs are in $BUILD/examples: .*hello.*tutorials/3_d2l_gpus"
rm -rf "$D"
finish
