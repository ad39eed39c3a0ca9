#!/bin/sh
# Runs all tests that need a real GPU: the GPU tests and the whole unit suite on it, the four tools
# of compute-sanitizer, the tutorials, a training. `report` writes a dated file below bench/results/
# from the results of the other parts in build/gpu-check/. Parts can therefore run one by one where
# a machine is available for minutes only.
# usage: gpu_check.sh [PART...]    default: all of
#     build suite units sanitizer-memcheck sanitizer-racecheck sanitizer-synccheck
#     sanitizer-initcheck run report
# Environment:
#     SUITE       parts of tests/cuda/run.sh; default: all
#     UNITS       words in names of unit tests; default: all
#     RUN         arguments of examples/run
#     WORK        the directory of results; default: build/gpu-check
#     REHEARSE=1  use the simulated driver (tests/simcuda) without a sanitizer, and write the report
#                 to WORK
#     BUILD, CC, LIBRARY, LIBS, MAKE, CONFIGS, as the Makefile sets them
. tests/lib.sh
: "${BUILD:=build/release}" "${CC:=cc}" "${CXX:=c++}" "${MAKE:=make}" \
    "${LIBRARY:=$BUILD/devtensor.o}" "${LIBS:=-lm -ldl -lpthread}"
export BUILD CC CXX MAKE LIBRARY LIBS
R=${WORK:-build/gpu-check}
LIBRARY_BUILD=$BUILD
mkdir -p "$R"
BUILD=$R # output of the functions of lib.sh
unset DEVTENSOR_CUDA DEVTENSOR_VIRTUAL_GPUS
ON_GPU=1
if [ -n "$REHEARSE" ]; then
    ON_GPU=
    O=$PWD/build/simcuda
    mkdir -p "$O"
    mkdir -p -m 700 "$O/kernels"
    MAKEFLAGS= "$MAKE" -s -j2 -f tests/simcuda/Makefile O=build/simcuda CC="$CC" all \
        >"$R/simcuda.log" 2>&1 || tail -n 25 "$R/simcuda.log"
    LD_LIBRARY_PATH=$O/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    SIMCUDA_CACHE=$O/cache
    DEVTENSOR_CACHE_DIR=$O/kernels
    export LD_LIBRARY_PATH SIMCUDA_CACHE DEVTENSOR_CACHE_DIR
fi

# ---- parts: each writes NAME.result, "counts | seconds", and its log ----
measure() { # NAME COMMAND...: a command that ends in a line of counts
    measured=$1
    shift
    begin=$(date +%s)
    "$@" >"$R/$measured.log" 2>&1
    code=$?
    seconds=$(($(date +%s) - begin))
    counts=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped$' "$R/$measured.log" | tail -n 1)
    [ -n "$counts" ] || counts="0 passed, 1 failed, 0 skipped" # it crashed or did not start
    if [ $code -ne 0 ]; then
        case $counts in *" 0 failed,"*) counts="0 passed, 1 failed, 0 skipped" ;; esac
    fi
    echo "$counts | $seconds" >"$R/$measured.result"
    grep -e ^FAIL -e ^SKIP "$R/$measured.log"
    echo "$counts" >"$R/$measured.counts"
    script "$measured" cat "$R/$measured.counts"
    echo "$measured: $(cat "$R/$measured.result") s"
}
counted() { # COMMAND...: turns an exit code into a line of counts
    if "$@"; then
        echo "1 passed, 0 failed, 0 skipped"
    else
        echo "0 passed, 1 failed, 0 skipped"
    fi
}
skipped_part() { # name, reason
    skip "$1" "$2"
    echo "0 passed, 0 failed, 1 skipped: $2 | 0" >"$R/$1.result"
}
sanitize() { # tool: runs it on the GPU tests
    sanitizer=$(command -v compute-sanitizer ||
        ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null)
    if [ -n "$REHEARSE" ]; then
        skipped_part "sanitizer-$1" "the simulated driver checks memory and races by itself"
    elif [ -z "$sanitizer" ]; then
        skipped_part "sanitizer-$1" "compute-sanitizer is not installed"
    else
        # 64-bit offsets need tens of GiB. A forked child without CUDA prints nothing there.
        measure "sanitizer-$1" sanitized "$sanitizer" "$1"
    fi
}
sanitized() { # program, tool
    "$1" --tool "$2" --error-exitcode 99 --print-limit 20 "$LIBRARY_BUILD/cuda/tests" -v || return
    ! grep -q 'ERROR SUMMARY: [1-9]' "$R/sanitizer-$2.log"
}

build() {
    measure build counted env MAKEFLAGS= BUILD= "$MAKE" config="${LIBRARY_BUILD##*/}" \
        "$LIBRARY_BUILD/unit/tests" "$LIBRARY_BUILD/cuda/tests" "$LIBRARY_BUILD/examples/run" \
        examples
}
suite() { # skips the parts that test the simulated driver
    measure suite env BUILD="$LIBRARY_BUILD" CUDA_WORK="$R/cuda" ON_GPU="$ON_GPU" JOBS=1 \
        sh tests/cuda/run.sh $SUITE
}
units() { measure units "$LIBRARY_BUILD/unit/tests" -v $UNITS; }
run() { measure run counted "$LIBRARY_BUILD/examples/run" ${RUN:---epochs 1}; }

report() {
    gpu=$("$R/which_gpu")
    name=$(date +%Y-%m-%d)-$(echo "${gpu%%,*}" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
    if [ -n "$REHEARSE" ]; then file=$R/$name.md; else file=bench/results/$name.md; fi
    {
        echo "# The tests on $gpu"
        echo
        version=$(sed -n 's/^#define DVT_VERSION_STRING "\(.*\)"/\1/p' devtensor.h)
        compiler=$($CC --version | head -n 1)
        echo "\`make gpu-check\`, $(date +%Y-%m-%d), devtensor $version, $compiler"
        echo
        echo '```'
        "$R/which_gpu" --table
        echo '```'
        echo
        echo "| part | result | seconds |"
        echo "|---|---|---|"
        for part in build suite units sanitizer-memcheck sanitizer-racecheck sanitizer-synccheck \
            sanitizer-initcheck run; do
            if [ -f "$R/$part.result" ]; then
                sed "s/^/| $part | /; s/$/ |/" "$R/$part.result"
            else
                echo "| $part | not run | |"
            fi
        done
        if grep -q -s ^FAIL "$R"/*.log; then
            printf '\n## Failures\n\n```\n'
            cat "$R"/*.log | grep ^FAIL
            echo '```'
        fi
    } >"$file"
    echo "$file"
}

# ---- look for a GPU ----
[ -f "$LIBRARY" ] || build
if ! $CC -std=gnu11 -I. -Itests -DDEVTENSOR_IMPLEMENTED tests/cuda/which/which_gpu.c $LIBRARY \
    -o "$R/which_gpu" $LIBS >"$R/which.log" 2>&1; then
    fail "which_gpu" "$(head -n 5 "$R/which.log")"
    finish
    exit 1
fi
if ! "$R/which_gpu" 2>"$R/which.log"; then
    skip "gpu-check" "$(cat "$R/which.log")"
    finish
    exit
fi
[ $# -gt 0 ] || set -- build suite units sanitizer-memcheck sanitizer-racecheck \
    sanitizer-synccheck sanitizer-initcheck run report
for part in "$@"; do
    case $part in
    sanitizer-*) sanitize "${part#sanitizer-}" ;;
    build | suite | units | run | report) $part ;;
    *) fail "$part" "no such part" ;;
    esac
done
finish
