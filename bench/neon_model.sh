#!/bin/sh
# Models the speed of the innermost loops of the 64-bit ARM target by llvm-mca, without such a
# machine; prints tables in Markdown, one for each compiler.
# usage: neon_model.sh   Environment: BUILD, PYTHON, CROSS, OBJDUMP, CLANG, MCA
d=${BUILD:-build/release}/neon_model
CROSS=${CROSS:-aarch64-linux-gnu-gcc} OBJDUMP=${OBJDUMP:-aarch64-linux-gnu-objdump}
CLANG=${CLANG:-clang} PYTHON=${PYTHON:-python3} MCA=${MCA:-llvm-mca-19}
for tool in "$CROSS" "$OBJDUMP" "$MCA" "$PYTHON"; do
    command -v "$tool" >/dev/null 2>&1 || { echo "$tool is not installed"; exit 0; }
done
mkdir -p "$d"
table() { # title, command of the compiler
    title=$1
    shift
    "$@" -std=gnu11 -O2 -DDVTI_FN=extern -Isrc -I. -c src/3_cpu/simd/target_plain.c \
        -o "$d/target.o" 2>"$d/log" || { echo "$title does not compile: $d/log"; return; }
    echo
    echo "## $title -O2"
    echo
    "$PYTHON" bench/neon_model.py "$d/target.o" "$OBJDUMP" "$MCA"
}
echo "# The 64-bit ARM target, modeled, $(date +%F)"
echo
echo "**Modeled, not measured**, by $("$MCA" --version | sed -n 's/.*LLVM version/llvm-mca/p')."
cat <<'END'
Command: `make bench-neon-model`. All data is in L1. A cell has the cycles of one iteration, then
the part of the peak of the FMA units, or elements per cycle. Products of 6x16 compute 6 rows and
16 columns of C per iteration. N1, N2, V1 and V2 are Arm's Neoverse cores. The column of Apple's
M1 is a bound by the numbers of its units, since LLVM has no model of that core.
END
table "$("$CROSS" --version | head -n 1)" "$CROSS"
if command -v "$CLANG" >/dev/null 2>&1; then
    table "$("$CLANG" --version | head -n 1)" "$CLANG" --target=aarch64-linux-gnu
else
    echo "$CLANG is not installed"
fi
