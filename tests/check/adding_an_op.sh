#!/bin/sh
# Applies the changes of docs/ADDING_AN_OP.md to a copy of the sources, as a reader would, builds it and runs the tests that the page
# adds. Environment: BUILD, CC, PYTHON, LIBS.
. tests/lib.sh
D=$BUILD/example
rm -rf "$D"
mkdir -p "$D/tests/unit"
cp -r src tools "$D/"
cp tests/*.[ch] "$D/tests/"
mkdir -p "$D/tests/tiers"
cp tests/tiers/math_rows.h "$D/tests/tiers/"
try "the page's changes have their places" "$PYTHON" tests/check/apply.py docs/ADDING_AN_OP.md "$D"
try "the generators accept them" sh -c "$PYTHON $D/tools/call_sites.py && $PYTHON $D/tools/amalgamate.py"
try "they compile" $CC -std=gnu11 -O0 -Wall -Wextra -Werror -I"$D" -I"$D/tests" \
    "$D/tests/implementation.c" "$D/tests/dvt_test.c" "$D"/tests/unit/*.c -o "$D/tests/run" $LIBS
try "the page's tests pass" sh -c "$D/tests/run example | grep '^2 passed, 0 failed'"
try "so does the table's own program" $CC -std=gnu99 -Wall -Wextra -Werror -I"$D" -I"$D/src" -fsyntax-only "$D/tools/doc_tables.c"
rm -rf "$D"
finish
