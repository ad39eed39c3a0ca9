#!/bin/sh
# The three budgets that hold always, and the sizes. Environment: BUILD, CC, CXX, LIBRARY, LIBS, as the Makefile sets them.
#   including the declarations   20 ms      (the median of 9, less an empty file's)
#   compiling the implementation 10 s       (gcc -O2)
#   a program that adds two arrays, stripped   2 MB
d=$BUILD/budgets
mkdir -p "$d"
echo 'int main(void) { return 0; }' >"$d/empty.c"
printf '#include "devtensor.h"\nint main(void) { return 0; }\n' >"$d/include.c"
cat >"$d/add.c" <<END
#include "devtensor.h"
int main(void) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    return dvt_item(dvt_sum(dvt_add(x, x), DVT_ALL)) != 4;
}
END
# Processor time, not the clock's, so that other work on the machine does not count.
milliseconds() {
    (
        "$@" >/dev/null 2>&1
        times
    ) | awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += t[1] * 60 + t[2] } print int(sum * 1000 + 0.5) }'
}
median() { for i in 1 2 3 4 5 6 7 8 9; do milliseconds "$@"; done | sort -n | sed -n 5p; }
row() { printf '%-56s %10s %s\n' "$1" "$2" "$3"; }
row "lines of src/" "$(find src -type f | xargs cat | wc -l)" ""
row "devtensor.h" "$(wc -c <devtensor.h)" "bytes"
row "devtensor.h" "$(wc -l <devtensor.h)" "lines"
empty=$(median $CC -c "$d/empty.c" -o "$d/empty.o")
include=$(median $CC -I. -c "$d/include.c" -o "$d/include.o")
row "including the declarations, $CC (budget 20)" $((include - empty)) "ms"
for compiler in gcc clang; do
    command -v $compiler >/dev/null 2>&1 || { row "$compiler" "" "is not installed"; continue; }
    for level in -O0 -O2; do
        spent=$(milliseconds $compiler -std=gnu11 $level -I. -Itests -c tests/implementation.c -o "$d/implementation.o")
        budget=""
        [ "$compiler$level" = gcc-O2 ] && budget=" (budget 10000)"
        row "compiling the implementation, $compiler $level$budget" $spent "ms"
    done
done
$CC -O2 -I. "$d/add.c" $LIBRARY -o "$d/add" $LIBS && strip "$d/add" && "$d/add" &&
    row "a program that adds two arrays, stripped (budget 2 MB)" "$(wc -c <"$d/add")" "bytes"
