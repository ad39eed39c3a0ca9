#!/bin/sh
# Checks that the map of the tutorials is fresh, and that its tool rejects changes to its lists.
# Environment: BUILD, PYTHON.
. tests/lib.sh
D=$BUILD/tutorial_cells
program=examples/tutorials/3_d2l_gpus.c
list=examples/tutorials/cells.txt
fresh() {
    rm -rf "$D"
    mkdir -p "$D/examples" "$D/docs"
    cp -r tools "$D/"
    cp -r examples/tutorials "$D/examples/"
    cp docs/TUTORIAL_MAP.md "$D/docs/"
}
check() { (cd "$D" && "$PYTHON" tools/tutorial_map.py --check) >"$D/said" 2>&1; }
refuses() { # text that the message must contain, after the change
    if check; then
        fail "tutorial cells" "not refused: $1"
    elif grep -q "$1" "$D/said" && grep -q "Why: " "$D/said" && grep -q "Fix: " "$D/said"; then
        pass
    else
        fail "tutorial cells" "instead of '$1': $(cat "$D/said")"
    fi
}
change() { # file, sed command
    sed "$2" "$D/$1" >"$D/changed" && ! cmp -s "$D/changed" "$D/$1" && cp "$D/changed" "$D/$1"
}

fresh; try "the map of the tutorials is fresh" check
fresh; change $program '/block("27"/d'; refuses 'has no block 27 for cell 27'
fresh; change $list '/^cell 27 = 27 /d'; refuses 'the cells of 3_d2l_gpus.c are'
fresh; change $list 's/^cell 33 = 33 /cell 33 = 32 /'; refuses 'no line for block 33'
fresh; change $list '/^text = 17 text/d'; refuses 'no line for block 17 text'
fresh; change $list 's/^cell 9 = 9 | /cell 9: /'; refuses 'no `cell N = BLOCK | CODE`'
fresh; change $program 's/block("9", /block("8", /'; refuses 'two have one number'
fresh; change $program 's/block("9", "/block("9", "now /'; refuses 'stale: docs/TUTORIAL_MAP.md'
rm -rf "$D"
finish
