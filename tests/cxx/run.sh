#!/bin/sh
# Tests devtensor.hpp: compiles its test program with every C++ compiler and standard without a
# warning, runs it, and once under the address sanitizer, which also finds leaks.
# Environment: BUILD, CXX, LIBRARY, LIBS, as the Makefile sets them.
. tests/lib.sh
D=$BUILD/cxx
W="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror"
rm -rf "$D"
mkdir -p "$D"
if ! has "$CXX"; then
    skip devtensor.hpp "$CXX is not installed"
    finish
    exit
fi
try "at most 300 lines" test "$(wc -l <devtensor.hpp)" -le 300
for compiler in g++ clang++; do
    if ! has $compiler; then
        skip "devtensor.hpp with $compiler" "$compiler is not installed"
        continue
    fi
    for std in c++17 c++20; do
        try "$compiler -std=$std" $compiler -std=$std $W -I. -fsyntax-only \
            tests/cxx/test_values.cpp
    done
    try "$compiler, included twice, without call sites" $compiler -std=c++17 $W -I. -fsyntax-only \
        -include devtensor.hpp -DDEVTENSOR_NO_CALL_SITES tests/cxx/test_values.cpp
done
refused() { # the sentence about exceptions
    ! $CXX -std=c++17 -fno-exceptions -I. -fsyntax-only tests/cxx/test_values.cpp \
        2>"$D/refused.txt" && grep -q "reports errors as exceptions" "$D/refused.txt"
}
try "without exceptions it says so" refused
try "the test program compiles" $CXX -std=c++17 -O1 -I. tests/cxx/test_values.cpp $LIBRARY \
    -o "$D/test_values" $LIBS
script "devtensor.hpp" "$D/test_values"
if echo 'int main() {}' | $CXX -fsanitize=address -x c++ - -o "$D/asan" 2>/dev/null &&
    "$D/asan"; then
    try "the test program compiles for ASan" $CXX -std=c++17 -fsanitize=address -I. \
        tests/cxx/test_values.cpp $LIBRARY -o "$D/test_asan" $LIBS
    script "devtensor.hpp under ASan" "$D/test_asan"
else
    skip "devtensor.hpp under ASan" "$CXX has no address sanitizer here"
fi
finish
