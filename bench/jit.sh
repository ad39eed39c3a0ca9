#!/bin/sh
# Measures the compile time of the CUDA kernels without a cache, without a GPU; prints a table in
# Markdown. The programs are those of tests/cuda/compile, each run in a new process. Times are CPU
# time, medians of ROUNDS (5).
# usage: jit.sh [ARCHITECTURE...]   Environment: BUILD, CC, LIBS, MAKE, as the Makefile sets them.
d=${BUILD:-build/release}/jit
[ $# -gt 0 ] || set -- 75 80 86 89 90 100 120
ROUNDS=${ROUNDS:-5}
rm -rf "$d"
mkdir -p "$d"
MAKEFLAGS= ${MAKE:-make} -s -f tests/simcuda/Makefile O=build/simcuda CC="${CC:-cc}" \
    build/simcuda/lib/libptx.a || exit 1
${CC:-cc} -std=gnu11 -O0 -I. tests/cuda/compile/compile_all.c build/simcuda/lib/libptx.a \
    -o "$d/compile_all" ${LIBS:--lm -ldl -lpthread} || exit 1
round=0
while [ $round -lt "$ROUNDS" ]; do # interleaved, so that other load affects all
    for arch in "$@"; do
        for calls in base three prewarm; do
            [ $calls != prewarm ] || [ $round -eq 0 ] || continue
            "$d/compile_all" --$calls --times "$arch" >"$d/$calls.$arch.$round" || {
                cat "$d/$calls.$arch.$round"
                exit 1
            }
            if grep -q '^SKIP' "$d/$calls.$arch.$round"; then
                cat "$d/$calls.$arch.$round"
                exit 1
            fi
        done
    done
    round=$((round + 1))
done

median() {
    sort -n |
        awk '{ v[NR] = $1 } END { if (NR) printf "%.0f", v[int((NR + 1) / 2)]; else printf "-" }'
}
row() { # title, command that prints the number of an architecture
    title=$1
    shift
    printf '| %s |' "$title"
    for arch in $archs; do printf ' %s |' "$("$@")"; done
    echo
}
family() { grep -h "^TIME $1 " "$d/base.$arch".* | awk '{ print $3 }' | median; }
total() { # of each run
    for run in "$d/$1.$arch".*; do
        awk '$1 == "TIME" && $2 != "start" { sum += $3 } END { print sum }' "$run"
    done | median
}
programs() { grep -c '^TIME' "$d/prewarm.$arch.0" | awk '{ print $1 - 1 }'; }
archs=$*
cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
echo "# Compiling the CUDA kernels cold, $(date +%F)"
echo
nvrtc=$(cat "$d"/base.* | grep -m 1 '^NVRTC')
echo "Machine: $cpu, $(getconf _NPROCESSORS_ONLN) threads; $nvrtc. Command: \`make bench-jit\`;"
echo "medians of $ROUNDS processes, milliseconds of CPU time; every cache is off."
echo
printf '| program |'
for arch in $archs; do printf ' sm_%s |' "$arch"; done
printf '\n|---|'
for arch in $archs; do printf -- '---|'; done
echo
for name in $(cat "$d"/base.* | awk '$1 == "TIME" && $2 != "start" && !seen[$2]++ { print $2 }'); do
    row "$name" family "$name"
done
row "**every family once**" total base
row "finding and opening NVRTC, once per process" family start
row "an addition, a product and a sum: three programs" total three
row "\`dvt_prewarm\`, one process" total prewarm
row "its programs" programs
