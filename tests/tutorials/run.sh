#!/bin/sh
# Runs each tutorial program with 0 and with 2 virtual GPUs, or with GPUS; TUTORIALS selects
# programs. The output must equal the text in expected/. It must also contain every chunk of
# printed/, the documents' own outputs. Lines that begin with "~" are ignored. Line numbers are
# masked; seconds and rows of the device table are masked too, because they depend on the machine.
# Environment: TUTORIAL_SHORT divides the size of the long parts; LOSSES=any ignores the losses of
# trainings.
# usage: run.sh [DIRECTORY_OF_PROGRAMS [--update]]
here=$(dirname "$0")
programs=$(cd "${1:-$BUILD/examples/tutorials}" && pwd) || exit 1
passed=0
failed=0
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export TUTORIAL_SHORT="${TUTORIAL_SHORT:-1}"
result() { # ok name
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAIL $2"
    fi
}
masked() {
    number='[0-9][0-9.e+-]*'
    unit='\(s\|ms\|µs\|ns\)'
    [ -z "$LOSSES" ] && loss='' || loss="s/^\(Epoch [0-9]*: loss\) $number,/\1 #,/"
    grep -v '^~' | sed -e 's|[^ ]*/\([a-z0-9_]*\.[ch]:\)|\1|g' -e 's|\(\.[ch]:\)[0-9][0-9]*|\1#|g' \
        -e 's/^\(devtensor\) [0-9.]*\(, CUDA driver:\) .*/\1 #\2 #, threads of cpu(): #/' \
        -e 's/^| \([cg]pu([0-9]*)\)  *|.*|$/| \1 | # |/' \
        -e 's/^no GPU: .*/no GPU: #/' -e 's/^.*\. Falling back to cpu\.$/#. Falling back to cpu./' \
        -e 's/^Version: .*/Version: #/' \
        -e "s/^\(Epoch [0-9]*: loss $number, in\) $number sec/\1 # sec/" \
        -e "s/^$number $unit ± $number $unit per loop/# per loop/" -e "$loss"
}
for source in "$here"/../../examples/tutorials/*.c; do
    name=$(basename "$source" .c)
    case " ${TUTORIALS:-$name} " in *" $name "*) ;; *) continue ;; esac
    for gpus in ${GPUS:-0 2}; do
        expected=$(cd "$here" && pwd)/expected/$name.$gpus.txt
        (cd "$work" && DEVTENSOR_VIRTUAL_GPUS=$gpus "$programs/$name" >all.txt 2>err.txt)
        rc=$?
        [ $rc = 0 ] || { cat "$work/err.txt"; tail -n 5 "$work/all.txt"; }
        result $rc "$name with $gpus GPUs ends with $rc"
        masked <"$work/all.txt" >"$work/got.txt"
        [ "$2" = --update ] && cp "$work/got.txt" "$expected"
        masked <"$expected" >"$work/expected.txt"
        diff "$work/expected.txt" "$work/got.txt" >"$work/diff.txt"
        rc=$?
        [ $rc = 0 ] || head -n 20 "$work/diff.txt"
        result $rc "$name with $gpus GPUs prints the expected text"
        printed=$here/printed/$name.$gpus.txt
        [ -f "$printed" ] || continue
        awk -v output="$work/got.txt" -v name="$name with $gpus GPUs" '
            BEGIN { while ((getline line < output) > 0) text = text line "\n"; text = "\n" text }
            function check() {
                if (index(text, "\n" chunk) > 0) return
                print "not printed by " name ":\n" chunk
                bad = 1
            }
            /^----$/ { check(); chunk = ""; next }
            { chunk = chunk $0 "\n" }
            END { check(); exit bad }' "$printed"
        result $? "$name with $gpus GPUs prints the document's own output"
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
