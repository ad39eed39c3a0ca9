#!/bin/sh
# Formats the sources, or with --check lists those with another format. Versions of clang-format
# differ, so one is fixed.
cd "$(dirname "$0")/.." || exit 1
version=14
for tool in "$CLANG_FORMAT" clang-format-$version clang-format; do
    [ -n "$tool" ] && command -v "$tool" >/dev/null 2>&1 && "$tool" --version |
        grep -q "version $version" && break
    tool=
done
if [ -z "$tool" ]; then
    echo "clang-format $version is not installed"
    exit 77
fi
# The generated lists of macros have longer lines.
files=$(find src tests examples bench tools -name '*.[ch]' ! -name 'dvt_call_sites*.h' | sort)
if [ "$1" != --check ]; then
    echo "$files" | xargs "$tool" -i
    exit
fi
status=0
for file in $files; do
    "$tool" "$file" | cmp -s - "$file" || {
        echo "$file has another format: run \`make format\`"
        status=1
    }
done
exit $status
