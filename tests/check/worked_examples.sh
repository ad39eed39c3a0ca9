#!/bin/sh
# Applies the changes of all docs/ADDING_*.md to one copy of the sources, as a reader would. Builds
# it and runs the tests of the pages, whose names begin with "example".
# Environment: BUILD, CC, PYTHON, LIBS.
. tests/lib.sh
D=$BUILD/example
rm -rf "$D"
mkdir -p "$D/tests/unit"
cp -r src tools "$D/"
cp tests/*.[ch] "$D/tests/"
mkdir -p "$D/tests/isa"
cp tests/isa/math_rows.h "$D/tests/isa/"
cp tests/unit/test_reduce_table.c "$D/tests/unit/" # sees the new row by itself
for page in docs/ADDING_*.md; do
    ! grep -q '^<!-- check: insert' "$page" ||
        try "the changes of $page can be inserted" "$PYTHON" tests/check/apply.py "$page" "$D"
done
try "the generators accept them" \
    sh -c "$PYTHON $D/tools/call_sites.py && $PYTHON $D/tools/amalgamate.py"
try "they compile" $CC -std=gnu11 -O0 -Wall -Wextra -Werror -I"$D" -I"$D/tests" \
    "$D/tests/implementation.c" "$D/tests/dvt_test.c" "$D"/tests/unit/*.c -o "$D/tests/run" $LIBS
for test in $(cat "$D"/tests/unit/*.c | sed -n 's/^DVT_TEST(\(.*\)) {/\1/p'); do
    try "the pages' test $test passes" sh -c "$D/tests/run $test | grep '^1 passed, 0 failed'"
done
try "the program of the tables accepts them" $CC -std=gnu99 -Wall -Wextra -Werror -I"$D" \
    -I"$D/src" -fsyntax-only "$D/tools/doc_tables.c"
rm -rf "$D"
finish
