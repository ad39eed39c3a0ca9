#!/bin/sh
# Links every layer with the layers below it and nothing else. A name that a layer takes from a
# higher layer or a sibling is then undefined. Each directory is one object, with its files in the
# order of src/devtensor_spine.h. Then checks the contract of 2_core/dvt_backend.h: the layers above
# the backends ask what a device can do (dvti_supports), and infer nothing from the type of a
# context. Environment: BUILD, CC, LIBS.
. tests/lib.sh
D=$BUILD/layers
rm -rf "$D"
mkdir -p "$D"

# The directories of layer 3, except the registry of them all.
backends=$(cd src && echo 3_* | sed 's/ *3_kernels//')

object() { # directory: compiles its files, with internal names that other objects can see
    grep "#include \"$1/.*\\.c\"" src/devtensor_spine.h >"$D/$1.c"
    $CC -std=gnu11 -O0 -w -DDVTI_FN=extern -Isrc -I. -c "$D/$1.c" -o "$D/$1.o"
}

# Links a program of the directories. Those below 3_kernels get a registry from the test.
links() { # layer, directories
    layer=$1
    shift
    set -- $(for directory; do echo "$D/$directory.o"; done)
    case $layer in
    1_base | 3_kernels | [4-9]_*) set -- "$@" "$D/main.o" ;;
    *) set -- "$@" "$D/registry.o" ;;
    esac
    $CC "$@" -o "$D/$layer" $LIBS >"$D/$layer.log" 2>&1 && "$D/$layer" ||
        { grep -o "undefined reference to .*" "$D/$layer.log" | sort -u | head -20; return 1; }
}

echo 'int main(void) { return 0; }' >"$D/main.c"
$CC -c "$D/main.c" -o "$D/main.o"
try "the registry of the test" $CC -std=gnu11 -O0 -Wall -Wextra -DDVTI_FN=extern -Isrc \
    -c tests/check/layers.c -o "$D/registry.o"
for directory in 1_base 2_core $backends 3_kernels 4_ops 5_grad 5_io 6_nn 7_train; do
    try "the object of $directory" object $directory
done
below=
for layer in 1_base 2_core; do
    below="$below $layer"
    try "$layer links without higher layers" links $layer $below
done
for layer in $backends; do
    try "$layer links without its siblings and higher layers" links $layer $below $layer
done
below="$below $backends"
for layer in 3_kernels 4_ops; do
    below="$below $layer"
    try "$layer links without higher layers" links $layer $below
done
for layer in 5_grad 5_io; do
    try "$layer links without its sibling and higher layers" links $layer $below $layer
done
below="$below 5_grad 5_io"
for layer in 6_nn 7_train; do
    below="$below $layer"
    try "$layer links without higher layers" links $layer $below
done

# asks DIRECTORY: no file of 4_ops to 7_train below it names a type of context, a kind of device or
# a backend. Two files do: they write the name of a context.
asks() {
    found=$(cd "$1" && grep -rnE \
        '\<DVT_DEVICE_(CPU|GPU)\>|kind->(type|name|simulates)|backend->name' \
        4_ops 5_grad 5_io 6_nn 7_train | grep -vE '^(4_ops/dvt_op_check|5_io/dvt_print)\.c:')
    [ -z "$found" ] && return
    echo "$found"
    echo "ask dvti_supports, or dvti_is_host_memory"
    return 1
}
refuses() { # LINE, which the check must find
    rm -rf "$D/src"
    cp -r src "$D/src"
    echo "$1" >>"$D/src/4_ops/op_sort.c"
    ! asks "$D/src" >"$D/said" && grep -q "^4_ops/op_sort.c:.*" "$D/said"
}
try "4_ops to 7_train ask what a device can do" asks src
try "the check finds a type of context" refuses 'if (x->storage->ctx.type != DVT_DEVICE_CPU)'
try "the check finds a kind of device" refuses 'if (device->kind->simulates)'
try "the check finds a backend" refuses 'if (strcmp(device->backend->name, "cuda") == 0)'
finish
