#!/bin/sh
# Checks sizes that do not depend on the machine: bytes of the header, bytes of text, functions of
# each ISA target. The limits are the sizes of GCC 12 on x86-64 when they were set, plus 2 %. Other
# versions of GCC get another 15 %. A change that needs more raises a limit here and says why.
# `make bench-budgets` measures seconds. Environment: BUILD, CC, LIBRARY.
. tests/lib.sh
# Raised for formats, recurrent layers, losses, reports, checkpoints and processes: 110 functions
# took 350 KB of the header and 100 KB of text. DEVTENSOR_NO_FORMATS and _NO_NN leave them out.
# Raised again by 160 KB and 60 KB: mixed precision, shapes without a forward pass, gradients sent
# while backward runs, sums by NCCL over processes. Also kernels of norms and cross-entropy.
# Raised by 65 KB of the header: one order of the buckets of several trainers, products by wgmma.
# Also sorts by the width of keys, parts of long softmax rows, groups of mixed dtypes.
# Raised by 50 KB of the header: buckets in several runs, copies by threads, reports of partial
# loads took 8 KB, and the rest is what is left for the next change.
# Raised by 20 KB and 20 KB: float32 products by wgmma (17 KB), files that survive failures.
HEADER=3470000 # bytes of devtensor.h; the aim is 2300000
TEXT=1480000   # bytes of text at -O2; the aim is 1000000
AVX2=254       # functions of the ISA target, one for each elementwise row and float type,
AVX512=272     # and one for each family of kernels

below() { # number, limit, name
    if [ "$1" -le "$2" ]; then pass; else fail "$3" "$1; at most $2"; fi
}
below "$(wc -c <devtensor.h)" $HEADER "bytes of devtensor.h"

case $BUILD in */release) reason= ;; *) reason="the limits are those of config=release" ;; esac

[ -n "$reason" ] || echo '#if !defined(__GNUC__) || defined(__clang__) || !defined(__x86_64__)
#error
#endif' | $CC -E -x c - >/dev/null 2>&1 || reason="the limits are GCC's on x86-64"
for tool in size nm; do has $tool || reason="$tool is not installed"; done
if [ -n "$reason" ]; then
    skip "text and functions" "$reason"
else
    margin=0
    [ "$($CC -dumpversion | cut -d. -f1)" = 12 ] || margin=15
    text=$(size "$LIBRARY" | awk 'NR == 2 { print $1 }')
    below "$text" $((TEXT * (100 + margin) / 100)) "bytes of text"
    functions() { nm "$LIBRARY" | grep -c " [tT] dvti_$1_[a-z0-9_]*$"; }
    below "$(functions avx2)" $((AVX2 * (100 + margin) / 100)) "functions for AVX2"
    below "$(functions avx512)" $((AVX512 * (100 + margin) / 100)) "functions for AVX-512"
fi
finish
