#!/bin/sh
# Exchanges arrays by DLPack with NumPy, PyTorch and JAX, as far as Python has them. Uses the Python
# of the benchmarks (build/bench-venv) where it exists, since that one has all three. The library is
# compiled without optimization and without the parts that are not tested here.
# Environment: BUILD, CC, PYTHON, FORM, LIBS.
. tests/lib.sh
D=$BUILD/dlpack
mkdir -p "$D"
python=build/bench-venv/bin/python
[ -x "$python" ] || python=$PYTHON

if has "$python"; then
    try "compile a shared library" $(quick_cc) -std=gnu11 -O0 -w -fPIC -shared -DDEVTENSOR_NO_CUDA \
        -DDEVTENSOR_NO_SIMD -DDEVTENSOR_NO_NN $FORM -Itests tests/implementation.c \
        -o "$D/libdevtensor.so" $LIBS
    script "exchange" "$python" tests/dlpack/exchange.py "$D/libdevtensor.so"
else
    skip dlpack "$python is not installed"
fi
finish
