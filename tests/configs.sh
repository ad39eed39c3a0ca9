#!/bin/sh
# Builds and runs the unit tests in every other configuration. A configuration without its compiler
# or sanitizer is skipped. Environment: BUILD, CC, CXX, MAKE, CONFIGS, as the Makefile sets them.
. tests/lib.sh
flag() { # the compiler flag of a configuration
    case $1 in
    asan) echo -fsanitize=address ;;
    ubsan) echo -fsanitize=undefined ;;
    tsan) echo -fsanitize=thread ;;
    msan) echo -fsanitize=memory ;;
    esac
}
mkdir -p "$BUILD"
echo 'int main(void) { return 0; }' >"$BUILD/probe.c"
for config in $CONFIGS; do
    case $config in
    release) continue ;;         # that is `make test`
    split-sanitized) continue ;; # that is .ci/run; its parts run here by themselves
    esac
    if [ "$config" = cxx ] && ! has "$CXX"; then
        skip "config=$config" "$CXX is not installed"
        continue
    fi
    compiler=$CC
    if [ "$config" = msan ] && ! $CC --version 2>/dev/null | grep -q clang; then
        compiler=clang # same as the Makefile
    fi
    # shellcheck disable=SC2046
    if ! { $compiler $(flag "$config") "$BUILD/probe.c" -o "$BUILD/probe" && "$BUILD/probe"; } \
        >/dev/null 2>&1; then
        skip "config=$config" "$compiler does not have $(flag "$config") here"
        continue
    fi
    echo "== config=$config"
    script "config=$config" env MAKEFLAGS= "$MAKE" CC="$CC" CXX="$CXX" config="$config" unit-quiet
done
finish
