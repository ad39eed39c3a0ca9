#!/bin/sh
# Installs what the comparison wants, where it can, and runs it. Environment: BUILD, PYTHON; ROW, SHORT, THREADS, OUT as run.py has them.
# What is missing in the end is left out of the table, which says so. bench/cpu/readme.py TABLE README.md puts its summary into the README.
: "${BUILD:=build/release}" "${PYTHON:=python3}"
here=$(dirname "$0")
command -v "$PYTHON" >/dev/null 2>&1 || { echo "the comparison needs Python 3; it is left out"; exit 0; }
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    for package in libopenblas0-pthread libblis4-pthread libdnnl2 libxsmm-dev; do
        dpkg -s "$package" >/dev/null 2>&1 ||
            DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq "$package" >/dev/null 2>&1 ||
            echo "could not install $package"
    done
fi
venv=build/bench-venv
if [ ! -x "$venv/bin/python" ]; then
    "$PYTHON" -m venv "$venv" || { echo "no virtual environment could be made; the comparison is left out"; exit 0; }
fi
for package in numpy torch jax numexpr; do
    "$venv/bin/python" -c "import $package" >/dev/null 2>&1 ||
        timeout 1800 "$venv/bin/pip" install -q "$package" || echo "could not install $package"
done
"$venv/bin/python" -c "import numpy" >/dev/null 2>&1 || { echo "the comparison needs numpy; it is left out"; exit 0; }
set -- --build "$BUILD" --python "$venv/bin/python" --row "$ROW"
[ -z "$SHORT" ] || set -- "$@" --short
[ -z "$THREADS" ] || set -- "$@" --threads "$THREADS"
[ -z "$OUT" ] || set -- "$@" --out "$OUT"
exec "$venv/bin/python" "$here/run.py" "$@"
