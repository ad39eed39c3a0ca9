#!/bin/sh
# Ranges as a profiler receives them (tool.c), by the types of the toolkit's header where that is
# installed. Environment: BUILD, CC, LIBS, CUDA_HOME.
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${LIBS:=-lm -ldl -lpthread}"
: "${CUDA_HOME:=/usr/local/cuda}"
T=tests/nvtx
D=$BUILD/nvtx
rm -rf "$D"
mkdir -p "$D"
RANGES_LOG=$PWD/$D/log
export RANGES_LOG
said() { # compares the calls of the tool
    printf '%b' "$1" >"$D/expected"
    touch "$RANGES_LOG"
    diff "$D/expected" "$RANGES_LOG"
}
with_tool() { # [VARIABLE=VALUE]... runs the program with the tool
    rm -f "$RANGES_LOG"
    env "$@" DEVTENSOR_LOG=off "$D/ranges"
}
all='tool -\npush step\npush forward, with a name of more than forty-seven bytes\npop -\npop -\n'

try "compile the program" $(quick_cc) -std=gnu99 -O0 -w -DDEVTENSOR_NO_SIMD -I. \
    $T/ranges.c -o "$D/ranges" $LIBS
try "compile the tool" $CC -std=gnu99 -Wall -Wextra -fPIC -shared $T/tool.c -o "$D/tool.so"
try "run with the tool" with_tool NVTX_INJECTION64_PATH="$PWD/$D/tool.so"
try "the tool sees the ranges" said "$all"
try "run without a tool" with_tool -u NVTX_INJECTION64_PATH
try "nothing is called" said ''
try "run with a missing tool" with_tool NVTX_INJECTION64_PATH=/nowhere/tool.so
try "run with a library that is no tool" with_tool NVTX_INJECTION64_PATH=libm.so.6
try "run with a tool that fails" with_tool NVTX_INJECTION64_PATH="$PWD/$D/tool.so" TOOL_FAILS=1
try "its callbacks are not called" said 'tool -\n'
if [ -f "$CUDA_HOME/include/nvtx3/nvToolsExt.h" ]; then
    try "compile the tool with the toolkit's types" $CC -std=gnu99 -Wall -fPIC -shared -DWITH_NVTX \
        -I"$CUDA_HOME/include" $T/tool.c -o "$D/nvtx.so" -ldl
    try "run with that tool" with_tool NVTX_INJECTION64_PATH="$PWD/$D/nvtx.so"
    try "that tool sees the ranges" said "$all"
else
    skip nvtx.header "no nvtx3/nvToolsExt.h below $CUDA_HOME"
fi
finish
