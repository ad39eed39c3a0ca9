#!/bin/sh
# Installs into an empty directory, moves it, and builds one program with the flags of pkg-config
# and one with the CMake package.
. tests/lib.sh
# Without the vector kernels a program compiles three times as fast.
small=-DDEVTENSOR_NO_SIMD
# The programs are compiled elsewhere, so the directory must be absolute.
D=$(mkdir -p "$BUILD/install" && cd "$BUILD/install" && pwd)
rm -rf "$D"
mkdir -p "$D"
try install sh tools/install.sh "$D/stage" /usr
mv "$D/stage/usr" "$D/moved"
cp tests/install/app.c "$D/app.c"
for file in include/devtensor.h include/devtensor.hpp lib/pkgconfig/devtensor.pc \
    lib/cmake/devtensor/devtensorConfig.cmake \
    lib/cmake/devtensor/devtensorConfigVersion.cmake; do
    try "installs $file" test -s "$D/moved/$file"
done

with_pkg_config() {
    PKG_CONFIG_PATH=$D/moved/lib/pkgconfig
    export PKG_CONFIG_PATH
    version=$(sed -n 's/^#define DVT_VERSION_STRING "\(.*\)"/\1/p' devtensor.h)
    pkg-config --exact-version="$version" devtensor &&
        $CC -DWITH_IMPLEMENTATION $small $(pkg-config --cflags devtensor) "$D/app.c" -o "$D/app" \
            $(pkg-config --libs devtensor) &&
        "$D/app"
}
if has pkg-config; then
    try pkg-config with_pkg_config
else
    skip pkg-config "pkg-config is not installed"
fi

with_cmake() { # directory with a CMakeLists.txt, wanted version
    mkdir -p "$D/$1" &&
        cmake -S "tests/install/$1" -B "$D/$1" -DCMAKE_PREFIX_PATH="$D/moved" \
            -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" \
            -DCMAKE_C_FLAGS="$small" -DCMAKE_CXX_FLAGS="$small" \
            -DWANTED="$2" &&
        cmake --build "$D/$1" && "$D/$1/app"
}
refuses() { ! "$@"; }
if has cmake; then
    try cmake with_cmake cmake_c 0.1
    if has "$CXX"; then
        try "cmake from C++" with_cmake cmake_cxx 0.1.0
    else
        skip "cmake from C++" "$CXX is not installed"
    fi
    try "cmake refuses a newer version" refuses with_cmake cmake_c 9.0
else
    skip cmake "cmake is not installed"
fi
finish
