#!/bin/sh
# Runs `make check`: properties of the sources, not the behavior of the library. Each line of this
# file is one check, or a script that counts several.
# Environment: BUILD, CC, PYTHON, LIBRARY, LIBS, as the Makefile sets them.
. tests/lib.sh
mkdir -p "$BUILD"
# Half of the time is that of these scripts, which another processor runs. Their output follows at
# the end.
parallel="layers"
! has "$PYTHON" || parallel="layers guards worked_examples"
for name in $parallel; do rm -f "$BUILD/check.$name".*; done
for name in $parallel; do
    sh "tests/check/$name.sh" >"$BUILD/check.$name.log" 2>&1
    echo $? >"$BUILD/check.$name.code"
done &
in_its_turn() { cat "$BUILD/check.$1.log" && [ "$(cat "$BUILD/check.$1.code")" = 0 ]; }

# ---- generated files and layers ----
if has "$PYTHON"; then
    try "call sites are fresh" "$PYTHON" tools/call_sites.py --check
    try "the header is fresh, and the layers hold" "$PYTHON" tools/amalgamate.py --check
    try "signatures of python/devtensor.py are fresh" "$PYTHON" tools/python_api.py --check
    line_numbers() {
        $CC -std=gnu11 -E -DDEVTENSOR_LINES -I. -Itests tests/implementation.c >"$BUILD/lines.i" &&
            "$PYTHON" tests/check/lines.py "$BUILD/lines.i"
    }
    try "DEVTENSOR_LINES gives the lines of src/" line_numbers
    try "public declarations are those of api.txt" "$PYTHON" tests/check/api_list.py
else
    skip "generated files" "$PYTHON is not installed"
fi

# ---- names ----
if has nm; then
    for what in exported private static macros; do
        if [ $what = private ] && ! $CC --version | grep -q "Free Software"; then
            skip "names: private" "only GCC keeps unused static functions"
        else
            try "names: $what" sh tools/check_symbols.sh $what
        fi
    done
else
    skip "names" "nm is not installed"
fi
if has "$PYTHON" && has nm; then
    nm -g $LIBRARY >"$BUILD/nm.txt"
    script "declarations" "$PYTHON" tests/check/api.py "$BUILD/nm.txt"
fi

# dvt_retain and dvt_release are for users, whose references are counted separately.
owners() {
    ! grep -rnE '\bdvt_(retain|release)\(' src --include='*.c' |
        grep -v '^src/2_core/dvt_scope.c:'
}
try "internal code uses dvti_own and dvti_disown" owners

# ---- layout ----
sh tools/format.sh --check >"$BUILD/format.log" 2>&1
case $? in
0) pass ;;
77) skip layout "$(cat "$BUILD/format.log")" ;;
*) fail layout "$(cat "$BUILD/format.log")" ;;
esac

# ---- intrinsics that a compiler gets wrong ----
# GCC 12 with -funsigned-char drops the first operand (its PR 110108). _mm256_blendv_ps gives the
# same result for lanes of 32 bits.
byte_blends() { ! grep -rnE '_blendv_epi8 *\(' src; }
try "no byte blends" byte_blends

# ---- sizes and words ----
script "budgets" sh tests/check/budgets.sh
listed() {
    find src tests examples bench tools -name '*.[ch]' -o -name '*.inl' -o -name '*.cu' \
        -o -name '*.py' -o -name '*.sh'
}
too_long() {
    ! listed | xargs wc -l |
        awk '$2 != "total" && $1 > 1000 { print; found = 1 } END { exit !found }'
}
try "no file over 1000 lines" too_long
listed | xargs wc -l |
    awk '$2 != "total" && $1 > 500 { print "note: " $2 " has " $1 " lines; aim for 500 at most" }'
words() { # the pattern does not match itself, and `placehol[d]er=` is an attribute of HTML
    ! grep -rnIE '\b(TO[D]O|FI[X]ME|XX[X]|HA[C]K|not implemen[t]ed|placehol[d]er)\b([^=]|$)' \
        src tests examples bench tools docs ./*.md Makefile
}
try "no markers of unfinished work" words

if has "$PYTHON" && has git && git rev-parse --git-dir >/dev/null 2>&1; then
    try "width, sentences and words of comments and documents" "$PYTHON" tests/check/prose.py
fi

# ---- documents ----
links() { # checks that the target of every relative link exists; `code` has no links
    bad=$(for file in ./*.md docs/*.md tests/*.md bench/*.md; do
        [ -f "$file" ] || continue
        sed 's/`[^`]*`//g' "$file" | grep -o '](\([^)#]*\)' | sed 's/](//' |
            grep -v '^[a-z]*:' | while read -r to; do
            [ -z "$to" ] || [ -e "$(dirname "$file")/$to" ] || echo "$file: $to"
        done
    done)
    [ -z "$bad" ] || { echo "$bad"; return 1; }
}
try "targets of links exist" links
try "generated tables are fresh" sh tools/docs.sh --check
if has "$PYTHON"; then
    try "the README's measurements are its table's" "$PYTHON" bench/cpu/readme.py --check README.md
    try "the charts show their tables" "$PYTHON" bench/cpu/chart.py --check bench/results/cpu-*.md
    script "cells of the tutorials" sh tests/check/tutorial_cells.sh
    script "blocks of the documents" "$PYTHON" tests/check/blocks.py
    script "the phrase book" sh tests/phrases/check.sh
    script "the site" sh tests/site/run.sh
else
    skip "blocks of the documents" "$PYTHON is not installed"
fi

# ---- layers at link time, changes that the checks must find, the examples of docs/ADDING_* ----
wait
for name in $parallel; do
    script "tests/check/$name.sh" in_its_turn "$name"
    rm -f "$BUILD/check.$name".*
done
finish
