#!/bin/sh
# Applies the changes of docs/ADDING_AN_OP.md, ADDING_A_REDUCTION.md and ADDING_AN_OPTIMIZER.md to a copy of the sources, as a reader
# would, builds it and runs the tests that the pages add. Environment: BUILD, CC, PYTHON, LIBS.
. tests/lib.sh
D=$BUILD/example
rm -rf "$D"
mkdir -p "$D/tests/unit"
cp -r src tools "$D/"
cp tests/*.[ch] "$D/tests/"
cp tests/unit/test_reduce_table.c "$D/tests/unit/"
mkdir -p "$D/tests/tiers"
cp tests/tiers/math_rows.h "$D/tests/tiers/"
for page in ADDING_AN_OP ADDING_A_REDUCTION ADDING_AN_OPTIMIZER; do
    try "the changes of $page have their places" "$PYTHON" tests/check/apply.py docs/$page.md "$D"
done
try "the generators accept them" sh -c "$PYTHON $D/tools/call_sites.py && $PYTHON $D/tools/amalgamate.py"
try "they compile" $CC -std=gnu11 -O0 -Wall -Wextra -Werror -I"$D" -I"$D/tests" \
    "$D/tests/implementation.c" "$D/tests/dvt_test.c" "$D"/tests/unit/*.c -o "$D/tests/run" $LIBS
try "the pages' tests pass" sh -c "$D/tests/run example | grep '^5 passed, 0 failed'"
try "the tests of all reductions see the new one" sh -c "$D/tests/run reduce_table | grep '^2 passed, 0 failed'"
try "so does the table's own program" $CC -std=gnu99 -Wall -Wextra -Werror -I"$D" -I"$D/src" -fsyntax-only "$D/tools/doc_tables.c"
rm -rf "$D"
finish
