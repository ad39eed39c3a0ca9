#!/bin/sh
# Installs the requirements of the comparison where possible, and runs it: run.py, or flags.py with
# "flags PROGRAM...". Environment: BUILD, PYTHON; ROW, SHORT, THREADS, OUT as in run.py. The table
# omits and names what is missing. DEVTENSOR_ISA=avx2 limits devtensor and the peers to AVX2.
# bench/cpu/readme.py TABLE [TABLE] README.md writes six rows of the summaries into the README.
: "${BUILD:=build/release}" "${PYTHON:=python3}"
here=$(dirname "$0")
leave_out() {
    echo "$1; it is left out"
    exit 0
}
command -v "$PYTHON" >/dev/null 2>&1 || leave_out "the comparison needs Python 3"
wanted="libopenblas0-pthread libblis4-openmp libdnnl2 libxsmm-dev libsleef3"
packages="numpy torch jax numexpr onnx onnxruntime scipy-openblas32 mlx[cpu]"
[ "$1" = flags ] && wanted="" packages="numpy"
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    for package in $wanted; do
        dpkg -s "$package" >/dev/null 2>&1 ||
            DEBIAN_FRONTEND=noninteractive timeout 300 \
                apt-get install -y -qq "$package" >/dev/null 2>&1 ||
            echo "could not install $package"
    done
fi
# Debian's newest BLIS, oneDNN and SLEEF, from this machine's mirror: extracted with the C library
# that they need, not installed.
newer=build/bench-peers
newer_packages() {
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 2>/dev/null |
        awk '$2 !~ /-/ { print $1; exit }')
    [ -n "$mirror" ] || return 1
    mkdir -p "$newer/lists/partial" "$newer/cache/archives/partial"
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] $mirror sid main" >"$newer/sources.list"
    set -- -qq -o "Dir::Etc::sourcelist=$PWD/$newer/sources.list" -o Dir::Etc::sourceparts=- \
        -o "Dir::State::lists=$PWD/$newer/lists" -o "Dir::Cache=$PWD/$newer/cache"
    timeout 300 apt-get "$@" update || return 1
    onednn=$(apt-cache "$@" pkgnames libdnnl3 | sort -V | tail -1)
    (cd "$newer" && for package in libblis4-openmp $onednn libsleef3 libc6 libgcc-s1 libgomp1 \
        libstdc++6; do
        timeout 300 apt-get "$@" download "$package" || echo "could not download $package" >&2
    done) 2>/dev/null
    rm -rf "$newer/lists" "$newer/cache"
    for package in "$newer"/*.deb; do
        dpkg -x "$package" "$newer" && dpkg-deb -W --showformat='${Package} ${Version}\n' "$package"
    done >"$newer/versions"
    rm -f "$newer"/*.deb
}
if [ "$1" != flags ] && [ ! -f "$newer/versions" ] && command -v apt-get >/dev/null 2>&1; then
    newer_packages >/dev/null 2>&1 || echo "could not fetch Debian's newest packages"
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
# PyPI's oneDNN is older than Debian's newest.
[ "$1" = flags ] || ls "$newer"/usr/lib/*/libdnnl.so.3* >/dev/null 2>&1 ||
    "$venv/bin/pip" install -q onednn-cpu-gomp || echo "could not install onednn-cpu-gomp"
for package in $packages; do
    module=$(echo "${package%%[[]*}" | tr - _)
    [ "$module" = mlx ] && module=mlx.core # mlx alone has no backend
    "$venv/bin/python" -c "import $module" >/dev/null 2>&1 ||
        timeout 1800 "$venv/bin/pip" install -q "$package" || echo "could not install $package"
done
"$venv/bin/python" -c "import numpy" >/dev/null 2>&1 ||
    leave_out "the comparison needs numpy"
if [ "$1" = flags ]; then
    shift
    exec "$venv/bin/python" "$here/flags.py" --python "$venv/bin/python" --out "$OUT" "$@"
fi
[ -n "$OUT$ROW$THREADS$SHORT" ] || OUT=bench/results
set -- --build "$BUILD" --python "$venv/bin/python" --row "$ROW"
[ -z "$SHORT" ] || set -- "$@" --short
[ -z "$THREADS" ] || set -- "$@" --threads "$THREADS"
[ -z "$OUT" ] || set -- "$@" --out "$OUT"
exec "$venv/bin/python" "$here/run.py" "$@"
