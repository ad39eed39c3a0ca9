#!/bin/sh
# Runs the programs of examples/ (or PROGRAMS) with 0 and with 2 virtual GPUs (or GPUS), in an empty
# directory, and checks their output.
# Environment: BUILD, CXX, MAKE, as the Makefile sets them.
. tests/lib.sh
programs=$(cd "$BUILD/examples" && pwd) || exit 1
D=$BUILD/examples/empty.$$ # tests/cuda runs this file too, maybe at the same time
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
torch=$PWD/tests/golden/torch
# The text that PyTorch has added to the prompt, by the metadata of the file.
greedy=$(head -n 1 "$torch/transformer.safetensors" |
    LC_ALL=C sed -n 's/.*"greedy":"\([^"]*\)".*/\1/p')
PROGRAMS=${PROGRAMS:-hello residual kernels cplusplus generate classify language run}
for program in $PROGRAMS; do
    if [ $program = cplusplus ] && ! has "$CXX"; then
        skip examples/cplusplus.cpp "$CXX is not installed"
        continue
    fi
    for gpus in ${GPUS:-0 2}; do
        name="examples/$program with $gpus virtual GPUs"
        arguments=
        [ $program = run ] && arguments="--epochs 1 --xavier --curve curve.svg"
        [ $program = generate ] && arguments=$torch/transformer.safetensors
        [ $program = classify ] || [ $program = language ] && arguments=$torch/$program.safetensors
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
        kernels) prints "^counted 100000 of 100000" && prints " ms on $device" ;;
        generate)
            prints "^The library [a-z]"
            run $gpus generate $arguments "The library " 60 0
            if [ "$(cat "$output")" = "$(printf '%b' "The library $greedy")" ]; then pass; else
                fail "$name" "instead of PyTorch's '$greedy': $(cat "$output")"
            fi
            run $gpus generate $arguments "snow $(printf '\342\230\203')"
            prints "^generate: .* 0xe2"
            try "$name prints no prompt that it refuses" sh -c '! grep -q snow "$1"' - "$output"
            ;;
        classify) # compares its results with those of PyTorch and fails if they differ
            prints "^image.0.: ankle boot" && prints "^160 logits, largest difference"
            run $gpus classify $arguments "$torch"/classify_0.png "$torch"/classify_1.pgm \
                "$torch"/classify_0_to_3.idx.gz
            prints "classify_0.png.0.: ankle boot" && prints "classify_1.pgm.0.: pullover" &&
                prints "idx.gz.3.: trousers"
            run $gpus classify $arguments "$torch"/lstm.safetensors
            prints "^classify: dvt_load_idx"
            ;;
        language)
            prints "^8 lines, all logits as PyTorch's" && prints "^C  .*  return dvt_add(x, y);"
            run $gpus language $arguments "while (x > 0) x--;" "The rows are sorted by name."
            prints "^C  .*  while" && prints "^English .*  The rows"
            ;;
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
