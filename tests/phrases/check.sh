#!/bin/sh
# Runs the column devtensor of docs/PHRASES.md on cpu() and on a virtual GPU. With PEERS=python also
# runs the cells of the other libraries that this Python has.
# Environment: BUILD, CC, PYTHON, LIBRARY, LIBS, PEERS.
. tests/lib.sh
D=$BUILD/phrases
mkdir -p "$D"
try "the program of the phrases is written" "$PYTHON" tools/phrases.py --program "$D/phrases.c"
try "it compiles" $CC -std=gnu11 -Wall -Wextra -Werror -Wno-unused \
    -Wno-missing-field-initializers -I. -D_GNU_SOURCE -DDEVTENSOR_IMPLEMENTED "$D/phrases.c" \
    $LIBRARY -o "$D/program" $LIBS
for gpus in 0 2; do
    in_folder() { # without what the rows print
        (cd "$D" && DEVTENSOR_VIRTUAL_GPUS=$gpus ./program 2>/dev/null) | grep -E '^FAIL| passed, '
    }
    script "phrases with $gpus virtual GPUs" in_folder
done
if [ -n "$PEERS" ]; then
    script "cells of the other libraries" env JAX_PLATFORMS=cpu "$PEERS" tests/phrases/peers.py
else
    skip "cells of the other libraries" "PEERS=python selects a Python that has them"
fi

# ---- the tools refuse a wrong source ----
refuses() { # text of the message, tool
    if (cd "$D/copy" && "$PYTHON" "tools/$2" --check) >"$D/said" 2>&1; then
        fail "$2" "not refused: $1"
    elif grep -q "$1" "$D/said" && grep -q "Why: " "$D/said" && grep -q "Fix: " "$D/said"; then
        pass
    else
        fail "$2" "instead of '$1': $(cat "$D/said")"
    fi
}
fresh() {
    rm -rf "$D/copy"
    mkdir -p "$D/copy/tests" "$D/copy/docs" "$D/copy/src"
    cp -r tools "$D/copy/"
    cp -r tests/phrases tests/check "$D/copy/tests/"
    cp -r src/0_api "$D/copy/src/"
    cp docs/API.md docs/PHRASES.md "$D/copy/docs/"
}
change() { # file, sed command
    sed "$2" "$D/copy/$1" >"$D/changed" && ! cmp -s "$D/changed" "$D/copy/$1" &&
        cp "$D/changed" "$D/copy/$1" || fail "phrases" "$2 does not change $1"
}
rows=tests/phrases/01_creation.txt
fresh; change $rows 's/^zeros$/nulls/'; refuses 'stale: docs/PHRASES.md' phrases.py
fresh; change $rows 's/^ones$/zeros/'; refuses 'two rows are "zeros"' phrases.py
fresh; change $rows 's/^    dvt dvt_copy(x)$//'; refuses 'has no line dvt' phrases.py
fresh; change $rows 's/^    np  x.copy()$/    numpy x/'; refuses 'a row is a title' phrases.py
fresh; change src/0_api/dvt_array.h 's/^.. Allocates an array whose.*$//'
refuses 'dvt_array.h:.*: dvt_empty' api_docs.py
fresh; change src/0_api/dvt_array.h 's/Allocates an array/Makes an array/'
refuses 'stale: docs/API.md' api_docs.py
rm -rf "$D"
finish
