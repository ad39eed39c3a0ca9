#!/bin/sh
# Builds and runs the rows of rows.txt: the library and its tests with other compilers, flags,
# languages, C libraries and machines. Skips rows whose tools are missing, and prints the reason.
# usage: run.sh            all rows; T=text selects those whose name contains the text, or whose
#                          column "when" is the text
#        run.sh --table    prints the table of docs/PORTABILITY.md
# Environment: BUILD, CC, LIBS, FORM, as the Makefile sets them; JOBS: rows at a time.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${LIBS:=-lm -ldl -lpthread}" "${FORM:=-I.}" "${T:=}"
ROWS=tests/matrix/rows.txt
D=$BUILD/matrix
rows() { grep -v '^#' $ROWS | grep ' | '; }

if [ "${1:-}" = --table ]; then
    echo '| row | compiler and flags | what is built and run | what it shows | in |'
    echo '|---|---|---|---|---|'
    rows | awk -F ' [|] ' '
        BEGIN {
            kind["all"] = "library, all unit tests"
            kind["some"] = "library, a selection of the unit tests"
            kind["declarations"] = "public declarations, compiled"
            kind["smoke"] = "a program that includes the implementation"
            kind["refused"] = "the implementation, which the compiler refuses"
            kind["shared"] = "programs with a library compiled by `cc`"
        }
        {
            flags = ($5 == "-" ? "" : " " $5) ($6 == "-" ? "" : " " $6)
            gsub(/ -idirafter [^ ]*/, "", flags)
            runner = ($7 == "-" ? "" : ", by `" $7 "`")
            command = "make test" ($2 == "quick" ? "" : "-long")
            shown = " | " $8 " | `" command "` |"
            print "| `" $1 "` | `" $4 flags "` | " kind[$3] runner shown
        }'
    exit
fi

names=$(rows |
    awk -F ' [|] ' -v text="$T" 'text == "" || index($1, text) || $2 == text { print $1 }')
if [ -z "$names" ]; then
    fail "matrix" "no row of $ROWS is called \"$T\""
    finish
    exit
fi
mkdir -p "$D"
export BUILD CC LIBS FORM D ROWS
for name in $names; do rm -rf "${D:?}/$name"; done
# Rows with the same flags share the objects of the tests, so these are compiled first, once each.
JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
for name in $names; do
    sh tests/matrix/row.sh "$name" objects
done | sort -u >"$D/objects.txt"
tr '\n' '\0' <"$D/objects.txt" |
    xargs -0 -r -n 1 -P "$JOBS" sh -c 'eval "$0"' >"$D/objects.log" 2>&1
for name in $names; do echo "$name"; done |
    xargs -n 1 -P "$JOBS" sh -c '
        mkdir -p "$D/$0"
        [ -z "${DVT_DOING:-}" ] || echo "row $0" >"$DVT_DOING"
        sh tests/matrix/row.sh "$0" >"$D/$0/row.log" 2>&1'
for name in $names; do
    echo "-- matrix/$name ($(cat "$D/$name/times" 2>/dev/null) of CPU time)"
    script "matrix/$name" cat "$D/$name/row.log"
done
finish
