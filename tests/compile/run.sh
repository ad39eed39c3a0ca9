#!/bin/sh
# Tests all ways to compile devtensor.h. A case is one small compilation; several run in parallel,
# and each prints output only when it fails. An implementation takes GCC 10 to 30 seconds of CPU
# time, a minute with -O2, and a quarter of that without the vector kernels. So `make test` only
# parses it where another case compiles the same text, with all warnings. Cases that test something
# else leave the kernels out.
# DVT_TEST_FULL=1 (`make test-long`) compiles and runs all of them.
# Environment: BUILD, CC, CXX, LIBRARY, LIBS, as the Makefile sets them; JOBS: cases at a time.
. tests/lib.sh
W="-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Werror"
T=tests/compile
D=$BUILD/compile
JOBS=${JOBS:-$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)}
rm -rf "$D"
mkdir -p "$D"

# ---- cases run in the background, as many at a time as there are processors ----
cases=""
running=0
start() { # name, function and its arguments
    name=$1
    shift
    doing "$name"
    ( (set -e; "$@") >"$D/$name.log" 2>&1; echo $? >"$D/$name.rc") &
    cases="$cases $name"
    running=$((running + 1))
    [ $((running % JOBS)) -ne 0 ] || wait
}
settle() {
    wait
    for name in $cases; do
        if [ "$(cat "$D/$name.rc" 2>/dev/null)" = 0 ]; then pass; else
            fail "$name" "$(head -n 12 "$D/$name.log")"
        fi
    done
}

# ---- functions of cases: compiler and flags come last ----
# Users compile their code with more warnings than we do.
declarations() { "$@" $W -Wconversion -Wsign-conversion -I. -fsyntax-only $T/declarations.c; }
implementation() { out=$1; shift; "$@" $W -I. -c tests/implementation.c -Itests -o "$out"; }
# The same without code generation: all warnings except those of the optimizer.
parsed() { shift; "$@" $W -I. -fsyntax-only $T/parsed.c -Itests; }
if [ -n "${DVT_TEST_FULL:-}" ]; then
    FULL=1 brief=implementation small=
else
    FULL= brief=parsed small=-DDEVTENSOR_NO_SIMD
fi
least="${small:+$small -DDEVTENSOR_NO_FORMATS -DDEVTENSOR_NO_NN}"
smoke() { # in its own directory, because it writes a file
    mkdir -p "$1"
    folder=$1
    shift
    "$@" -I. $T/smoke.c -o "$folder/smoke" $LIBS
    (cd "$folder" && ./smoke)
}
silent() { # the smoke program provokes errors, and without a default logger none of them is printed
    smoke "$@" >"$D/silent.txt" 2>&1
    [ ! -s "$D/silent.txt" ]
}
program() { # output, sources, then the compiler
    out=$1 sources=$2
    shift 2
    "$@" -I. $sources -o "$out" $LIBS
    "$out"
}
# Blocks of guards give no warning. Each of five breaks out of them gives one when the compiler
# optimizes. GCC -Og does not see that a variable is set when only a nested guard sets it.
guards() { # directory, then the compiler
    mkdir -p "$1"
    folder=$1
    shift
    for level in 0 1 2 s g; do
        doubts=
        [ $level != g ] || doubts=-Wno-maybe-uninitialized
        "$@" -O$level $W $doubts -I. -c $T/guards.c -o "$folder/guards.o"
        "$@" -O$level $W -I. -c $T/breaks.c -o "$folder/scoped.o"
        "$@" -O$level -DDVT_SCOPE_BLOCKS -I. -c $T/breaks.c -o "$folder/breaks.o" \
            2>"$folder/breaks.log"
        found=$(grep -c "warning:.*break leaves only" "$folder/breaks.log" || true)
        wanted=5
        [ $level != 0 ] || wanted=0
        [ "$found" -ge $wanted ] && [ $((found > 0)) = $((wanted > 0)) ] || {
            echo "-O$level: $found warnings of breaks, $wanted wanted"
            return 1
        }
    done
}
breaks() { # output, then the compiler: the same at run time
    out=$1
    shift
    "$@" -I. -c $T/breaks.c -o "$out.o"
    case $1 in
    g++) g++ "$out.o" $LIBRARY -o "$out" $LIBS ;;
    *) $CC "$out.o" $LIBRARY -o "$out" $LIBS ;;
    esac
    "$out"
}
# A compiler that cannot end a scope at a break accepts the declarations, and rejects DVT_SCOPED
# with an explanation.
no_cleanup() { # output, then the compiler
    out=$1
    shift
    "$@" -DDVT_SCOPE_BLOCKS -I. -c $T/breaks.c -o "$out.o"
    ! "$@" -I. -c $T/breaks.c -o "$out.o" 2>"$out.refused" || return 1
    grep "use_DVT_SCOPE_and_its_block" "$out.refused"
}
two_units() {
    out=$1 object=$2
    shift 2
    "$@" -I. -c $T/two.c -o "$out.1.o"
    "$@" -I. -c $T/other.c -o "$out.2.o"
    $CC "$out.1.o" "$out.2.o" $object -o "$out" $LIBS
    "$out"
}
alone() { # the header in an empty directory, and the command of the README
    mkdir -p "$D/alone"
    cp devtensor.h $T/app.c "$D/alone"
    (cd "$D/alone" && "$@" app.c -lm -ldl -lpthread && ./a.out | grep -q "NDArray 2x3")
}
# The README's other command: compiles the header itself, in an empty directory.
once() {
    mkdir -p "$D/once"
    cp devtensor.h "$D/once"
    sed '/DEVTENSOR_IMPLEMENTATION/d' $T/app.c >"$D/once/app.c"
    (cd "$D/once" && "$@" $W -c -x c -DDEVTENSOR_IMPLEMENTATION devtensor.h -o devtensor.o &&
        $CC app.c devtensor.o -lm -ldl -lpthread && ./a.out | grep -q "NDArray 2x3")
}
# Some warnings need an optimizing compiler: the Makefile has compiled the library with all.
optimized() {
    [ -f "$1.warnings" ] || echo "no $1.warnings, which the Makefile writes"
    [ -f "$1.warnings" ] && cat "$1.warnings" && [ ! -s "$1.warnings" ]
}
renamed() { # a copy with another name, next to a file that is not the header
    mkdir -p "$D/renamed/inner"
    cp devtensor.h "$D/renamed/inner/dt.h"
    echo '/* not the header */' >"$D/renamed/inner/devtensor.h"
    printf '#define DEVTENSOR_IMPLEMENTATION\n#include "inner/dt.h"\n' >"$D/renamed/lib.c"
    "$@" -fsyntax-only -DDEVTENSOR_FILE='"dt.h"' "$D/renamed/lib.c"
    "$@" -fsyntax-only "$D/renamed/lib.c" 2>"$D/renamed/said.txt" && return 1
    grep -q "DEVTENSOR_FILE names another file" "$D/renamed/said.txt"
}

# ---- every compiler and language ----
for compiler in gcc clang; do
    if ! has $compiler; then
        skip "compile.$compiler" "$compiler is not installed"
        continue
    fi
    for std in c99 ${FULL:+c11} c17; do
        start declarations.$compiler.$std declarations $compiler -std=$std -Wstrict-prototypes
        [ -n "$FULL" ] || [ $std = c99 ] || continue
        start implementation.$compiler.$std $brief "$D/$compiler.$std.o" $compiler -std=$std \
            -Wstrict-prototypes
    done
done
for compiler in g++ clang++; do
    if ! has $compiler; then
        skip "compile.$compiler" "$compiler is not installed"
        continue
    fi
    for std in c++11 c++14 c++17; do
        start declarations.$compiler.$std declarations $compiler -x c++ -std=$std \
            -Wold-style-cast
    done
    start implementation.$compiler.c++17 $brief "$D/$compiler.o" $compiler -x c++ -std=c++17
    [ -z "$FULL$(echo $compiler | grep ^c)" ] ||
        start smoke.$compiler smoke "$D/smoke.$compiler" $compiler -x c++ -std=c++17 \
            $small
    [ -z "$FULL$(echo $compiler | grep ^g)" ] ||
        start later.$compiler program "$D/later.$compiler" $T/later.c $compiler -x c++ -std=c++17 \
            $least
    start kernels.$compiler program "$D/kernels.$compiler" $T/kernels.c $compiler -x c++ -std=c++17
done
# Some warnings need an optimizing compiler.
has gcc && start guards.gcc guards "$D/guards.gcc" gcc -std=c99
has g++ && start guards.g++ guards "$D/guards.g++" g++ -x c++ -std=c++11
has clang && start guards.clang guards "$D/guards.clang" clang -std=c99 -Wno-unknown-warning-option
has clang++ && start guards.clang++ guards "$D/guards.clang++" \
    clang++ -x c++ -std=c++11 -Wno-unknown-warning-option
start breaks breaks "$D/breaks" $CC -std=c99 -DDVT_SCOPE_BLOCKS
start scoped breaks "$D/scoped" $CC -std=c99
# C++ without the attribute, as in other compilers: destructors.
has g++ && start breaks.destructor breaks "$D/breaks.cxx" \
    g++ -x c++ -std=c++11 -include $T/not_gnu.h -DDVT_SCOPE_BLOCKS
has g++ && start scoped.destructor breaks "$D/scoped.cxx" \
    g++ -x c++ -std=c++11 -include $T/not_gnu.h
start guards.none no_cleanup "$D/none" $CC -std=gnu99 -include $T/not_gnu.h
if has tcc; then
    start guards.tcc no_cleanup "$D/tcc" tcc
else
    skip compile.guards.tcc "tcc is not installed"
fi

# ---- -ffast-math: disabled with GCC, rejected with a message elsewhere ----
fast_math() { program "$@" -std=gnu11 -Isrc -fno-lto; }
refused() { # compiler, then the flag
    ! "$@" -Isrc -fsyntax-only $T/fast_math.c 2>"$D/refused.txt" &&
        grep -q "cannot undo -ffast-math" "$D/refused.txt"
}
for level in -O0 -O2; do
    for flag in -ffast-math -ffinite-math-only -funsafe-math-optimizations -freciprocal-math; do
        has gcc && start fast_math.gcc$level$flag fast_math "$D/fast$level$flag" $T/fast_math.c \
            gcc $level $flag
    done
done
has clang && start fast_math.clang.refused refused clang -ffast-math
macros() { "$@" -I. -fsyntax-only $T/macros.c; }
has gcc && start fast_math.macros.O2 macros gcc -O2 -DFAST=0
has gcc && start fast_math.macros.ffast_math macros gcc -O2 -ffast-math -DFAST=1
has gcc && start fast_math.macros.Ofast macros gcc -Ofast -DFAST=1

# Clang is five times faster. `make test` uses GCC where a case is about it.
fast=$CC
[ -n "$FULL" ] || ! has clang || fast=clang

# ---- several translation units ----
start two_units two_units "$D/two" "$LIBRARY" $CC
start static_twice two_units "$D/static" "" $fast -std=gnu99 -DDEVTENSOR_STATIC $small
start later program "$D/later" $T/later.c $fast -std=gnu99 $least
start kernels program "$D/kernels" $T/kernels.c $CC $W
start alone alone $fast
start once once $fast ${FULL:+-O2} $small
start optimized optimized "$LIBRARY"
start renamed renamed $CC
has g++ && start two_units_cxx two_units "$D/two_cxx" "$LIBRARY" g++ -x c++ -std=c++11

# ---- every switch alone, two sets of switches, and all together ----
switches="NO_THREADS NO_CUDA NO_FILES NO_FORMATS NO_NN NO_AVX512 NO_SIMD PLAIN_TARGET NO_CALL_SITES"
switches="$switches NO_STDERR LINES"
half="-DDEVTENSOR_NO_THREADS -DDEVTENSOR_NO_FILES -DDEVTENSOR_NO_AVX512"
half="$half -DDEVTENSOR_NO_CALL_SITES -DDEVTENSOR_LINES"
other_half="-DDEVTENSOR_NO_CUDA -DDEVTENSOR_NO_NN -DDEVTENSOR_PLAIN_TARGET -DDEVTENSOR_NO_STDERR"
other_half="$other_half $small"
all=""
for switch in $switches; do
    if [ -n "$FULL" ]; then
        start "smoke.$switch" smoke "$D/smoke.$switch" $CC -std=gnu99 $W -DDEVTENSOR_$switch
    else # Clang also reports unused static functions without code generation
        start "parsed.$switch" parsed "" $fast -std=gnu99 -DDEVTENSOR_$switch
    fi
    all="$all -DDEVTENSOR_$switch"
done
start smoke.half smoke "$D/smoke.half" $fast -std=gnu99 $W $half
start smoke.all smoke "$D/smoke.all" $fast -std=gnu99 $W $all
start silent silent "$D/silent" $fast -std=gnu99 $W $other_half
start parsed.static parsed "" $fast -std=gnu99 -DDEVTENSOR_STATIC
[ -z "$FULL" ] || start smoke.static smoke "$D/smoke.static" $CC -std=gnu99 $W -DDEVTENSOR_STATIC

# ---- together with OpenMP ----
for compiler in gcc ${FULL:+clang}; do
    if echo 'int main(void) { return 0; }' |
        $compiler -fopenmp -x c - -o "$D/omp.$compiler" 2>/dev/null; then
        start openmp.$compiler program "$D/openmp.$compiler" $T/openmp.c $compiler -std=gnu99 \
            -fopenmp $least
    else
        skip compile.openmp.$compiler "$compiler has no OpenMP here"
    fi
done

# ---- other machines, where the compiler supports them ----
windows=x86_64-w64-mingw32
if has $windows-gcc; then
    # tests/windows compiles and links it where Wine can run it.
    if [ -n "$FULL" ] || ! { has wine64 || [ -x /usr/lib/wine/wine64 ]; }; then
        start implementation.windows $brief "$D/windows.o" $windows-gcc -std=c11 \
            -Wstrict-prototypes
        start program.windows $windows-gcc -std=gnu11 -I. $T/smoke.c -o "$D/smoke.exe"
    fi
else
    skip compile.windows "$windows-gcc is not installed"
fi
if has $windows-g++; then
    start implementation.windows.c++17 $brief "$D/windows.cxx.o" $windows-g++ -x c++ -std=c++17
else
    skip compile.windows.c++17 "$windows-g++ is not installed"
fi
if echo 'int main(void) { return 0; }' | $CC -m32 -x c - -o "$D/m32" 2>/dev/null; then
    # Uses the kernel headers of 64 bits if there are no others. tests/matrix runs such programs.
    start parsed.m32 parsed "" $CC -std=gnu99 -m32 -idirafter /usr/include/x86_64-linux-gnu
else
    skip compile.m32 "$CC cannot build 32-bit programs here"
fi

settle
finish
