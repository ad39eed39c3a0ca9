#!/bin/sh
# Tests python/devtensor.py with the standard library, and its exchange with NumPy, PyTorch and JAX
# as far as Python has them. The library is compiled without optimization, CUDA and SIMD. Uses the
# Python of the benchmarks where it exists, as tests/dlpack/run.sh.
# Environment: BUILD, CC, PYTHON, FORM, LIBS.
. tests/lib.sh
D=$BUILD/python
mkdir -p "$D"
python=build/bench-venv/bin/python
[ -x "$python" ] || python=$PYTHON

if ! has "$python"; then
    skip "devtensor.py" "$python is not installed"
elif ! "$python" -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    skip "devtensor.py" "$python is not Python 3.8 or later with ctypes"
elif ! has "${CC%% *}"; then
    skip "devtensor.py" "${CC%% *} is not installed, so there is no shared library"
else
    try "compile a shared library" $(quick_cc) -std=gnu11 -O0 -w -fPIC -shared -DDEVTENSOR_NO_CUDA \
        -DDEVTENSOR_NO_SIMD $FORM -Itests tests/implementation.c -o "$D/libdevtensor.so" $LIBS
    if [ -f "$D/libdevtensor.so" ]; then
        export CC FORM DEVTENSOR_LIBRARY="$D/libdevtensor.so"
        script "devtensor.py" "$python" tests/python/test_devtensor.py "$D"
    fi
fi
finish
