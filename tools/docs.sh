#!/bin/sh
# Writes the generated tables of the documents, between the comments that name them, and the pages
# that are generated as a whole. With --check it writes nothing, and returns 1 when one is stale.
# Environment: CC, BUILD, LIBRARY, LIBS, PYTHON, as the Makefile sets them.
set -e
d=$BUILD/docs
mkdir -p "$d"
$CC -std=gnu99 -I. -Isrc -DDEVTENSOR_IMPLEMENTED tools/doc_tables.c $LIBRARY -o "$d/doc_tables" \
    $LIBS
status=0
table() { # output of doc_tables, the rows of tests/matrix, or the GPU model; the document
    case $1 in
    matrix) sh tests/matrix/run.sh --table >"$d/table.md" ;;
    gpu_model) "${PYTHON:-python3}" bench/gpu/model.py --table >"$d/table.md" ;;
    *) "$d/doc_tables" "$1" >"$d/table.md" ;;
    esac
    awk -v begin="<!-- $1:begin -->" -v end="<!-- $1:end -->" -v table="$d/table.md" '
        $0 == end { inside = 0; found++ }
        !inside { print }
        $0 == begin { inside = 1; found++; while ((getline line < table) > 0) print line }
        END { exit found != 2 }' "$2" >"$d/new.md" || {
        echo "$2 has no place for the table $1"
        exit 1
    }
    cmp -s "$d/new.md" "$2" && return
    if [ "$check" = --check ]; then
        echo "$2 is stale: run \`make docs\` and commit the result"
        status=1
    else
        cp "$d/new.md" "$2"
        echo "wrote the table $1 of $2"
    fi
}
check=$1
table summary docs/OPERATIONS.md
table operations docs/OPERATIONS.md
table accuracy docs/OPERATIONS.md
table errors docs/ERRORS.md
table matrix docs/PORTABILITY.md
if command -v "${PYTHON:-python3}" >/dev/null 2>&1; then
    table gpu_model docs/GPU_MODEL.md
    for page in api_docs phrases; do
        "${PYTHON:-python3}" tools/$page.py $check || status=1
    done
fi
exit $status
