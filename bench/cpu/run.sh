#!/bin/sh
# Installs the requirements of the comparison where possible, and runs it: run.py, or flags.py with
# "flags PROGRAM...". Environment: BUILD, PYTHON; ROW, SHORT, THREADS, OUT as in run.py. The table
# omits and names what is missing.
# bench/cpu/readme.py TABLE README.md writes six rows of the summary into the README.
: "${BUILD:=build/release}" "${PYTHON:=python3}"
here=$(dirname "$0")
leave_out() {
    echo "$1; it is left out"
    exit 0
}
command -v "$PYTHON" >/dev/null 2>&1 || leave_out "the comparison needs Python 3"
wanted="libopenblas0-pthread libblis4-pthread libdnnl2 libxsmm-dev libsleef3"
packages="numpy torch jax numexpr onnx onnxruntime scipy-openblas32"
[ "$1" = flags ] && wanted="" packages="numpy"
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    for package in $wanted; do
        dpkg -s "$package" >/dev/null 2>&1 ||
            DEBIAN_FRONTEND=noninteractive timeout 300 \
                apt-get install -y -qq "$package" >/dev/null 2>&1 ||
            echo "could not install $package"
    done
fi
# Debian has libxsmm only as an archive. It passes products that it does not generate to a BLAS.
xsmm=$BUILD/bench/cpu/libxsmm.so
if [ "$1" != flags ] && [ ! -f "$xsmm" ] && [ ! -f /usr/lib/libxsmm.so ]; then
    mkdir -p "$BUILD/bench/cpu"
    "${CC:-cc}" -shared -o "$xsmm" -Wl,--whole-archive -l:libxsmm.a -Wl,--no-whole-archive \
        -l:libopenblas.so.0 -lm -ldl -lpthread >/dev/null 2>&1 ||
        echo "libxsmm could not be linked"
fi
venv=build/bench-venv
if [ ! -x "$venv/bin/python" ]; then
    "$PYTHON" -m venv "$venv" || leave_out "the comparison needs a virtual environment"
fi
for package in $packages; do
    "$venv/bin/python" -c "import $(echo "$package" | tr - _)" >/dev/null 2>&1 ||
        timeout 1800 "$venv/bin/pip" install -q "$package" || echo "could not install $package"
done
"$venv/bin/python" -c "import numpy" >/dev/null 2>&1 ||
    leave_out "the comparison needs numpy"
if [ "$1" = flags ]; then
    shift
    exec "$venv/bin/python" "$here/flags.py" --python "$venv/bin/python" --out "$OUT" "$@"
fi
[ -n "$OUT$ROW$THREADS" ] || OUT=bench/results
set -- --build "$BUILD" --python "$venv/bin/python" --row "$ROW"
[ -z "$SHORT" ] || set -- "$@" --short
[ -z "$THREADS" ] || set -- "$@" --threads "$THREADS"
[ -z "$OUT" ] || set -- "$@" --out "$OUT"
exec "$venv/bin/python" "$here/run.py" "$@"
