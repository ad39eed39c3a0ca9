#!/bin/sh
# Runs the test suite of the array API standard on python/devtensor.py, and prints the tables of
# docs/PYTHON.md. Not a part of `make test`, because the suite is not in this repository.
# docs/PYTHON.md says how to get it.
# usage: array_api.sh SUITE [OPTION OF PYTEST...]
# The suite expects a complex dtype when it is imported: a copy of it gets a default there.
# Environment: BUILD (build/release), PYTHON (python3), EXAMPLES (100) for each test.
set -e
suite=${1:?the directory of the suite is missing}
shift
: "${BUILD:=build/release}" "${PYTHON:=python3}"
root=$PWD
copy=$BUILD/array-api-tests
rm -rf "$copy"
mkdir -p "$copy"
for part in array_api_tests array-api conftest.py reporting.py pytest.ini; do
    cp -R "$suite/$part" "$copy"
done
widest='^\( *\[(dt, dtype_nbits\[dt\]) for dt in complex_dtypes\], key=.*\[1\]\)$'
sed "s/$widest/\1, default=(xp.float64, 64)/" \
    "$suite/array_api_tests/dtype_helpers.py" >"$copy/array_api_tests/dtype_helpers.py"
case $PYTHON in
*/*) PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON") ;;
esac
cd "$copy"
PYTHONPATH=$root/python ARRAY_API_TESTS_MODULE=devtensor \
    ARRAY_API_TESTS_SKIP_DTYPES=int16,uint16,uint32,uint64,complex64,complex128 \
    "$PYTHON" -m pytest array_api_tests -q -p no:cacheprovider --disable-warnings --tb=short \
    --max-examples="${EXAMPLES:-100}" --hypothesis-disable-deadline \
    --json-report --json-report-file=report.json "$@" >log.txt 2>&1 || true
tail -n 1 log.txt
"$PYTHON" "$root/tests/python/array_api_report.py" report.json
echo "The failures are in $copy/log.txt."
