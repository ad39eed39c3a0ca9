#!/bin/sh
# Measures compile time and size of the library, next to those of SQLite's amalgamation.
# tests/check/budgets.sh checks sizes that do not depend on the machine.
# Environment: BUILD, CC, LIBRARY, LIBS, as the Makefile sets them. SQLITE=path names an
# amalgamation. Without it, the script makes one below BUILD from Debian's source package.
# SWITCHES=1 measures only what each switch of docs/BUILDING.md saves.
#
# Budgets:
#   including the declarations                   20 ms (the median of 9, minus an empty file's);
#   compiling, as a ratio to SQLite              gcc -O2 0.6, clang -O2 0.7, both at -O0 2.2;
#   the small builds of docs/BUILDING.md         5 s, 350 KB;
#   a program that adds two arrays, stripped     2 MB, with section garbage collection 500 KB.
d=$BUILD/budgets
mkdir -p "$d"
echo 'int main(void) { return 0; }' >"$d/empty.c"
printf '#include "devtensor.h"\nint main(void) { return 0; }\n' >"$d/include.c"
cat >"$d/add.c" <<PROGRAM
#include "devtensor.h"
int main(void) {
    dvt_array *x = dvt_ones(DVT_SHAPE(2), DVT_F32, dvt_cpu());
    return dvt_item(dvt_sum(dvt_add(x, x), DVT_ALL)) != 4;
}
PROGRAM
SMALL="-DDEVTENSOR_NO_NN -DDEVTENSOR_NO_FILES -DDEVTENSOR_NO_FORMATS -DDEVTENSOR_NO_CUDA"
SMALL="$SMALL -DDEVTENSOR_NO_AVX512"
# Measures processor time, so that other work on the machine does not count.
milliseconds() {
    (
        "$@" >/dev/null 2>&1
        times
    ) | awk 'NR == 2 {
        for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += t[1] * 60 + t[2] }
        print int(sum * 1000 + 0.5)
    }'
}
median() { for i in 1 2 3 4 5 6 7 8 9; do milliseconds "$@"; done | sort -n | sed -n 5p; }
row() { printf '%-60s %10s %s\n' "$1" "$2" "$3"; }
text_of() { size "$1" | awk 'NR == 2 { print $1 }'; } # code, constants and unwind tables
code_of() { size -A "$1" | awk '$1 ~ /^\.text/ { sum += $2 } END { print sum }'; }
library() { # flags, output, then the compiler
    flags=$1 out=$2
    shift 2
    "$@" $flags -w -x c -DDEVTENSOR_IMPLEMENTATION -c devtensor.h -o "$out"
}

build() { # name, flags: a build of the library
    spent=$(milliseconds library "$2" "$d/switch.o" $CC)
    row "$1" "$spent" "ms"
    row "  text with constants" "$(text_of "$d/switch.o")" "bytes"
}
if [ -n "$SWITCHES" ]; then
    build "$CC -O2" -O2
    for switch in SIMD AVX512 NN CUDA FILES FORMATS; do
        build "$CC -O2 -DDEVTENSOR_NO_$switch" "-O2 -DDEVTENSOR_NO_$switch"
    done
    for flags in -O2 -Os "-Os -DDEVTENSOR_NO_SIMD"; do
        build "the small build, $CC $flags" "$flags $SMALL"
    done
    for switches in "" "$SMALL -DDEVTENSOR_NO_SIMD"; do
        library "-Os $switches -ffunction-sections -fdata-sections" "$d/switch.o" $CC &&
            $CC -Os -I. "$d/add.c" "$d/switch.o" -Wl,--gc-sections -o "$d/add" $LIBS &&
            strip "$d/add" && "$d/add" &&
            row "a program that adds two arrays, $CC -Os${switches:+ and all six}" \
                "$(wc -c <"$d/add")" "bytes"
    done
    exit
fi

# Makes SQLite's amalgamation at $1, unless it exists. Prints the reason of a failure.
make_sqlite() {
    [ ! -f "$1" ] || return
    for tool in apt-get tclsh dpkg-source make; do
        command -v $tool >/dev/null 2>&1 || { echo "$tool is not installed"; return; }
    done
    grep -q '^ID=debian' /etc/os-release 2>/dev/null || { echo "this is not Debian"; return; }
    folder=$(cd "$(dirname "$1")" && pwd)
    mkdir -p "$folder/lists/partial" "$folder/sources"
    # The machine's own sources of packages, for source packages.
    sed 's/^deb /deb-src /' /etc/apt/sources.list >"$folder/sources/machine.list" 2>/dev/null
    for file in /etc/apt/sources.list.d/*.sources; do
        sed 's/^Types:.*/Types: deb-src/' "$file" >"$folder/sources/${file##*/}" 2>/dev/null
    done
    private="-o Dir::Etc::sourcelist=- -o Dir::Etc::sourceparts=$folder/sources"
    private="$private -o Dir::State::lists=$folder/lists -o APT::Sandbox::User=$(id -un)"
    (
        cd "$folder" &&
            timeout 120 apt-get $private update &&
            timeout 120 apt-get $private source --download-only sqlite3 &&
            dpkg-source --no-check -x sqlite3_*.dsc source &&
            mkdir -p build && cd build &&
            ../source/configure --disable-tcl &&
            make sqlite3.c &&
            mv sqlite3.c "$1"
    ) >"$folder/log.txt" 2>&1 || echo "making it failed: $(tail -n 1 "$folder/log.txt")"
}

row "lines of src/" "$(find src -type f | xargs cat | wc -l)" ""
row "devtensor.h" "$(wc -c <devtensor.h)" "bytes"
row "devtensor.h" "$(wc -l <devtensor.h)" "lines"
empty=$(median $CC -c "$d/empty.c" -o "$d/empty.o")
include=$(median $CC -I. -c "$d/include.c" -o "$d/include.o")
row "including the declarations, $CC (budget 20)" $((include - empty)) "ms"
if [ -z "$SQLITE" ]; then
    mkdir -p "$d/sqlite"
    SQLITE=$(cd "$d/sqlite" && pwd)/sqlite3.c
    missing=$(make_sqlite "$SQLITE")
else
    missing=
fi
[ -f "$SQLITE" ] || row "SQLite's amalgamation" "" "is left out: ${missing:-$SQLITE does not exist}"
for compiler in gcc clang; do
    command -v $compiler >/dev/null 2>&1 || { row "$compiler" "" "is not installed"; continue; }
    for level in -O0 -O2; do
        case $compiler$level in
        gcc-O2) budget=0.6 ;;
        clang-O2) budget=0.7 ;;
        *) budget=2.2 ;;
        esac
        spent=$(milliseconds library $level "$d/$compiler$level.o" $compiler)
        row "compiling the implementation, $compiler $level" $spent "ms"
        row "  section .text" "$(code_of "$d/$compiler$level.o")" "bytes"
        row "  text with constants" "$(text_of "$d/$compiler$level.o")" "bytes"
        [ -f "$SQLITE" ] || continue
        other=$(milliseconds $compiler $level -w -c "$SQLITE" -o "$d/sqlite.o")
        row "  SQLite's amalgamation" $other "ms"
        row "  ratio (budget $budget)" "$(awk "BEGIN { printf \"%.2f\", $spent / $other }")" ""
    done
done
for simd in "" -DDEVTENSOR_NO_SIMD; do
    spent=$(milliseconds library "-Os $SMALL $simd" "$d/small.o" $CC)
    row "the small build, $CC -Os $simd (budget 5000)" "$spent" "ms"
    row "  text with constants (budget 350 KB)" "$(text_of "$d/small.o")" "bytes"
done
$CC -O2 -I. "$d/add.c" $LIBRARY -o "$d/add" $LIBS && strip "$d/add" && "$d/add" &&
    row "a program that adds two arrays, stripped (budget 2 MB)" "$(wc -c <"$d/add")" "bytes"
library "-O2 -ffunction-sections -fdata-sections" "$d/sections.o" $CC &&
    $CC -O2 -I. "$d/add.c" "$d/sections.o" -Wl,--gc-sections -o "$d/add" $LIBS &&
    strip "$d/add" && "$d/add" &&
    row "  with section garbage collection (budget 500 KB)" "$(wc -c <"$d/add")" "bytes"
