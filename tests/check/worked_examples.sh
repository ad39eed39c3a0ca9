#!/bin/sh
# Applies the changes of all docs/ADDING_*.md to one copy of the sources, as a reader would. Builds
# it and runs the tests of the pages. Also runs the tests that take their rows from the tables.
# Environment: BUILD, CC, PYTHON, LIBS.
. tests/lib.sh
D=$BUILD/example
rm -rf "$D"
mkdir -p "$D/tests/unit" "$D/tests/isa"
BUILD=$D
cp -r src tools "$D/"
cp tests/*.[ch] "$D/tests/"
cp tests/isa/*.h "$D/tests/isa/"
for seeing in elementwise reduce_table optimizer_kernels; do
    cp "tests/unit/test_$seeing.c" "$D/tests/unit/"
done
cp tests/unit/*.h "$D/tests/unit/"
for seeing in test_op_table test_reduce test_optimizer test_bounds test_bounds_axes \
    test_bounds_products bounds; do
    cp "tests/isa/$seeing.c" "$D/tests/isa/"
done
for page in docs/ADDING_*.md; do
    ! grep -q '^<!-- check: insert' "$page" ||
        try "the changes of $page can be inserted" "$PYTHON" tests/check/apply.py "$page" "$D"
done
try "the generators accept them" \
    sh -c "$PYTHON $D/tools/call_sites.py && $PYTHON $D/tools/amalgamate.py"

# One library for both programs: tests/isa calls internal functions.
C="$CC -std=gnu11 -O0 -DDVTI_FN=extern -DDEVTENSOR_PLAIN_TARGET"
W="-Wall -Wextra -Werror"
try "they compile" $C $W -I"$D" -I"$D/tests" -c "$D/tests/implementation.c" -o "$D/library.o"
try "their tests compile" $C $W -I"$D" -I"$D/tests" "$D/library.o" "$D/tests/dvt_test.c" \
    "$D"/tests/unit/*.c -o "$D/tests/run" $LIBS
try "the kernel tests compile" $C -I"$D/src" -I"$D" -I"$D/tests" "$D/library.o" \
    "$D/tests/dvt_test.c" "$D"/tests/isa/*.c -o "$D/tests/run_isa" $LIBS
script "the tests of the pages and of all rows" "$D/tests/run"
script "the kernel tests of all rows" "$D/tests/run_isa"
try "the program of the tables accepts them" $CC -std=gnu99 -Wall -Wextra -Werror -I"$D" \
    -I"$D/src" -fsyntax-only "$D/tools/doc_tables.c"
rm -rf "$D"
finish
