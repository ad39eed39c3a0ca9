#!/bin/sh
# Runs one row of the matrix, in the environment of run.sh.
# usage: row.sh NAME            builds and runs it
#        row.sh NAME objects    prints the commands that compile the tests it links
. tests/lib.sh
name=$1
W=$D/$name
field() { grep "^$name | " $ROWS | awk -F ' [|] ' -v n="$1" '{ print $n == "-" ? "" : $n }'; }
what=$(field 3)
compiler=$(field 4)
library=$(field 5)
every=$(field 6)
runner=$(field 7)
# The selection: tests of each layer of the library, and tests that depend on the machine.
SOME="arrays autograd blocks conv conversions copies core elementwise elementwise_corners gradients
idx index inflate layers loader losses matmul npy optimizer params print pool random reduce
save_load scan scopes sort thread_pool threads topk trainer views virtual"
FORKS="virtual_forked_child thread_pool_exit_is_silent"
case " $library $every " in
*" -x c++ "*) standard= ;;
*" -std="*) standard= ;;
*) standard=-std=gnu11 ;;
esac

# ---- the tests: C, without the flags of the library ----
case $compiler in
*clang++) tests_compiler=clang ;;
*g++) tests_compiler=${compiler%g++}gcc ;;
*) tests_compiler=$compiler ;;
esac
O=$D/objects/$(echo "$tests_compiler $every" | cksum | cut -d ' ' -f 1)
case $what in
all) files=$(ls tests/unit/*.c) ;;
some) files=$(for subject in $SOME; do echo "tests/unit/test_$subject.c"; done) ;;
*) files= ;;
esac
[ -z "$files" ] || files="tests/dvt_test.c $files"
# Without extra flags the objects are those of OBJECTS, if `make test` or `make test-long` set that
# directory.
made=
if [ -n "${OBJECTS:-}" ] && [ -z "$every" ]; then made=$OBJECTS; fi
object() {
    of=${1#tests/}
    if [ -n "$made" ]; then echo "$made/${of%.c}.o"; else echo "$O/$(basename "$1" .c).o"; fi
}

# Prints the reason why programs of this row cannot be built and run here, or nothing.
missing() {
    has "$compiler" || { echo "$compiler is not installed"; return; }
    has "$tests_compiler" || { echo "$tests_compiler is not installed"; return; }
    [ -z "$runner" ] || has "$runner" || { echo "$runner is not installed"; return; }
    [ "$what" != shared ] || return
    mkdir -p "$W"
    echo 'int main(void) { return 0; }' >"$W/probe.c"
    if [ "$what" = declarations ]; then
        $compiler $library $every -c "$W/probe.c" -o "$W/probe.o" >"$W/probe.log" 2>&1 ||
            echo "$compiler refuses: $(head -n 1 "$W/probe.log")"
    elif ! $compiler $library $every "$W/probe.c" -o "$W/probe" $libraries \
        >"$W/probe.log" 2>&1; then
        echo "$compiler cannot link that here: $(head -n 1 "$W/probe.log")"
    elif ! $runner "$W/probe" >"$W/probe.log" 2>&1; then
        echo "such programs do not run here: $(head -n 1 "$W/probe.log")"
    fi
}
libraries=$LIBS
reason=$(missing)

if [ "${2:-}" = objects ]; then
    [ -z "$reason$made" ] || exit 0
    mkdir -p "$O"
    for file in $files; do
        echo "$tests_compiler -std=gnu11 $every -O0 -w $FORM -Itests -c $file -o $(object "$file")"
    done
    exit 0
fi

if [ -n "$reason" ]; then
    skip "matrix/$name" "$reason"
    finish
    exit
fi
mkdir -p "$W"
export DEVTENSOR_CUDA=0

with_tests() {
    objects=
    for file in $files; do objects="$objects $(object "$file")"; done
    try "it compiles" $compiler $standard $library $every $FORM -Itests \
        -c tests/implementation.c -o "$W/devtensor.o"
    [ $failed -eq 0 ] || return
    try "it links" $tests_compiler $every $objects "$W/devtensor.o" -o "$W/tests" $libraries
    [ $failed -eq 0 ] || return
    wanted=
    case $runner in
    qemu-*)
        wanted=$($runner "$W/tests" --list | grep -E '^[a-z_0-9]+$')
        for test in $FORKS; do
            case " $(echo $wanted) " in
            *" $test "*)
                skip "matrix/$name/$test" "$runner fails when a process with threads forks"
                ;;
            esac
            wanted=$(echo "$wanted" | grep -vx "$test")
        done
        ;;
    esac
    script "matrix/$name" $runner "$W/tests" $wanted
}
smoke() {
    try "it compiles" $compiler $library $every $FORM tests/compile/smoke.c \
        -o "$W/smoke" $libraries
    [ $failed -ne 0 ] || try "it runs" in_directory $runner ./smoke
}
refused() {
    if $compiler $standard $library $every $FORM -Itests -c tests/implementation.c \
        -o "$W/devtensor.o" >"$W/refused.log" 2>&1; then
        fail "matrix/$name" "it compiles"
    elif grep -m 1 'error:' "$W/refused.log" | grep -q 'error: .*devtensor: '; then
        pass
    else
        fail "matrix/$name" "$(grep -m 1 'error:' "$W/refused.log")"
    fi
}
in_directory() { (cd "$W" && "$@"); }
shared() {
    try "the library compiles" $CC -std=gnu11 -O1 -fPIC -shared $FORM -Itests \
        tests/implementation.c -o "$W/libdevtensor.so" $libraries
    try "it compiles" $compiler $every $FORM -DSMOKE_USES_OBJECT tests/compile/smoke.c \
        "$W/libdevtensor.so" -o "$W/smoke" $libraries
    [ $failed -ne 0 ] || try "it runs" in_directory env LD_LIBRARY_PATH=. ./smoke
}

export BUILD="$W" # output directory of the functions of lib.sh; rows run in parallel
case $what in
all | some) with_tests ;;
smoke) smoke ;;
refused) refused ;;
declarations)
    try "it compiles" $compiler $library $every $FORM -c tests/compile/declarations.c \
        -o "$W/declarations.o"
    ;;
shared) shared ;;
*) fail "matrix/$name" "rows.txt has no \"$what\"" ;;
esac
times >"$W/times.log"
tail -n 1 "$W/times.log" >"$W/times"
finish
