#!/bin/sh
# Loads plug-ins with a private copy of the library, computes with them and unloads them, 100 times,
# with threads and fork in between. Links the same object file into programs without shared
# libraries. Compiled once, without optimization. Environment: BUILD, CC, LIBS.
. tests/lib.sh
T=tests/plugin
D=$BUILD/plugin
rm -rf "$D"
mkdir -p "$D"
export DEVTENSOR_VIRTUAL_GPUS=2

# Kernels are not tested here.
try "compile a plug-in" $(quick_cc) -std=gnu99 -O0 -w -fPIC -fvisibility=hidden \
    -DDEVTENSOR_NO_CUDA -I. -c $T/plugin.c -o "$D/plugin.o"
for name in one two three; do
    try "link $name" $CC -shared "$D/plugin.o" -o "$D/$name.so" $LIBS
done
try "compile the host" $CC -std=gnu99 -O1 -Wall -Wextra $T/host.c -o "$D/host" $LIBS
try "load, compute, unload" "$D/host" "$D/one.so" "$D/two.so" "$D/three.so"

in_a_program() { # linker flags
    printf 'int plugin_compute(int, int);\nint main(void) { return plugin_compute(3, 2); }\n' \
        >"$D/program.c"
    $CC "$@" "$D/program.c" "$D/plugin.o" -o "$D/program" $LIBS && "$D/program"
}
try "in a program" in_a_program
if echo 'int main(void) { return 0; }' | $CC -static -x c - -o "$D/static" -lm 2>/dev/null; then
    try "in a static program" in_a_program -static
else
    skip plugin.static "$CC cannot link static programs here"
fi
finish
