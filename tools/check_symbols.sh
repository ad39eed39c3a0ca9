#!/bin/sh
# Checks the names that devtensor.h adds to a program. Exported ones start with dvt_, private ones
# with dvti_, macros with DVT or DEVTENSOR. With DEVTENSOR_STATIC nothing is exported. Prints the
# errors; returns 0 when there are none.
# usage: check_symbols.sh exported|private|static|macros   (environment: CC, BUILD, LIBRARY)
set -e
what=$1
d=$BUILD/symbols
mkdir -p "$d"
wrong() { # explains the lines on standard input, if there are any
    names=$(cat)
    [ -z "$names" ] && return 0
    echo "$1: $(echo "$names" | tr '\n' ' ')"
    echo "  Why: $2"
    echo "  Fix: $3"
    return 1
}
case $what in
exported)
    nm -g $LIBRARY | awk 'NF == 3 && $2 ~ /[A-TV-Z]/ && $3 !~ /^_?dvt_/ { print $3 }' |
        wrong "exported without dvt_" "a drop-in file must not take names from its host" \
            "make the function static or DVTI_FN, or rename it"
    ;;
private)
    # Keeps unused static functions, which compilers drop by default.
    $CC -std=gnu11 -O0 -fkeep-static-functions -I. -Itests -c tests/implementation.c -o "$d/all.o"
    nm --defined-only "$d/all.o" |
        awk '$2 ~ /[a-z]/ && $3 !~ /^_?dvti?_/ && $3 !~ /[.]/ { print $3 }' |
        wrong "private without dvti_" \
            "the implementation shares a translation unit with the user's own names" \
            "call it dvti_<subject>_<name>"
    ;;
static)
    $CC -std=gnu11 -O0 -DDEVTENSOR_STATIC -I. -c tests/compile/two.c -o "$d/static.o"
    nm -g "$d/static.o" | awk 'NF == 3 && $2 != "U" && $3 !~ /^_?main$/ { print $3 }' |
        wrong "exported despite DEVTENSOR_STATIC" \
            "a private copy must not collide with another one" \
            "declare it with DVT_API or DVTI_FN"
    ;;
macros)
    $CC -std=gnu11 -I. -Itests -E -dD tests/implementation.c | awk '
        /^# [0-9]+ "/ { here = $3 ~ /devtensor[.]h"$/ }
        /^#define / && here { sub(/[(].*/, "", $2); defined[$2] = 1 }
        /^#undef / { delete defined[$2] }
        END {
            for (name in defined)
                if (name !~ /^(DVT|dvt|DEVTENSOR)/ && name != "_GNU_SOURCE") print name
        }' | sort |
        wrong "macros left behind" "a macro changes the host program after the include" \
            "#undef it where its use ends, or start its name with DVTI_"
    ;;
*)
    echo "usage: check_symbols.sh exported|private|static|macros"
    exit 2
    ;;
esac
