#!/bin/sh
# Compiles each module of src/ alone, without code generation: it includes what it uses. The tests
# of config=split also link them (make test-long).
# Environment: CC.
. tests/lib.sh
: "${CC:=cc}" "${BUILD:=build/release}"
D=$BUILD/modules
rm -rf "$D"
mkdir -p "$D"
find src -name '*.c' | sort >"$D/all"
export CC D
xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 sh -c '
    $CC -std=gnu11 -Wall -Wextra -Werror -Isrc -I. -fsyntax-only "$0" >"$D/said.$$" 2>&1 ||
        { echo "$0"; head -n 5 "$D/said.$$"; } >"$D/failed.$$"' <"$D/all"
for log in "$D"/failed.*; do
    [ ! -f "$log" ] || fail "$(head -n 1 "$log")" "$(sed 1d "$log")"
done
passed=$(($(wc -l <"$D/all") - failed))
finish
