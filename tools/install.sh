#!/bin/sh
# Installs the headers, a pkg-config file and a CMake package. Both derive their prefix from their
# own location, so the tree may be moved.
# usage: install.sh DESTDIR PREFIX
set -e
cd "$(dirname "$0")/.."
to=$1$2
version=$(sed -n 's/^#define DVT_VERSION_STRING "\(.*\)"/\1/p' devtensor.h)
mkdir -p "$to/include" "$to/lib/pkgconfig" "$to/lib/cmake/devtensor"
cp devtensor.h devtensor.hpp "$to/include/"

cat >"$to/lib/pkgconfig/devtensor.pc" <<END
prefix=\${pcfiledir}/../..
includedir=\${prefix}/include

Name: devtensor
Description: NumPy-like arrays on cpu() and gpu(i), gradients and training in one C header
Version: $version
Cflags: -I\${includedir}
Libs: -lm -ldl -lpthread
END

cat >"$to/lib/cmake/devtensor/devtensorConfig.cmake" <<'END'
# devtensor::devtensor        the header and its link libraries; define DEVTENSOR_IMPLEMENTATION in
#                             one source file
# devtensor::implementation   the same with the implementation compiled as a separate library
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(devtensor_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET devtensor::devtensor)
  add_library(devtensor::devtensor INTERFACE IMPORTED)
  set_target_properties(devtensor::devtensor PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${devtensor_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
  if(UNIX)
    set_property(TARGET devtensor::devtensor APPEND PROPERTY INTERFACE_LINK_LIBRARIES m)
  endif()
  get_property(devtensor_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  add_library(devtensor_implementation STATIC EXCLUDE_FROM_ALL
    "${CMAKE_CURRENT_LIST_DIR}/devtensor.c")
  if(NOT "C" IN_LIST devtensor_languages)
    set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/devtensor.c" PROPERTIES LANGUAGE CXX)
    target_compile_features(devtensor_implementation PRIVATE cxx_std_17)
  endif()
  target_link_libraries(devtensor_implementation PUBLIC devtensor::devtensor)
  add_library(devtensor::implementation ALIAS devtensor_implementation)
endif()
END
cat >"$to/lib/cmake/devtensor/devtensor.c" <<'END'
/* The implementation, for devtensor::implementation. */
#define DEVTENSOR_IMPLEMENTATION
#include "devtensor.h"
END
cat >"$to/lib/cmake/devtensor/devtensorConfigVersion.cmake" <<END
# Before 1.0 every minor version may break compatibility; from then on, every major one.
set(PACKAGE_VERSION "$version")
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" devtensor_has "\${PACKAGE_VERSION}")
string(REGEX MATCH "^[0-9]+\\\\.[0-9]+" devtensor_wants "\${PACKAGE_FIND_VERSION}")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
elseif(devtensor_has STREQUAL devtensor_wants OR PACKAGE_FIND_VERSION MATCHES "^[0-9]+\$")
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
else()
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
endif()
if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
END
echo "installed devtensor $version under $to"
