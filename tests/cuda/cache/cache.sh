#!/bin/sh
# Tests the cache of compiled kernels against damaged and malicious files. No file may break a
# program. Files that others could have written must not run; damaged files must be replaced.
# usage: cache.sh PROGRAM (cache_user, with the environment that gives it a GPU)
here=$(dirname "$0")
. "$here/../../lib.sh"
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
work=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
umask 077
unset DEVTENSOR_CACHE DEVTENSOR_CACHE_DIR DEVTENSOR_CACHE_SIZE XDG_CACHE_HOME DEVTENSOR_NVRTC_PATH

# says NAME EXPECTED [VARIABLE=VALUE...]: compares the output of the program with the cache in
# $cache (the variables may name another one).
says() {
    name=$1 expected=$2
    shift 2
    said=$(env DEVTENSOR_CACHE_DIR="$cache" "$@" "$program" 2>"$work/err")
    if [ "$said" = "$expected" ]; then
        pass
    else
        fail "$name" "said '$said' $(head -c 300 "$work/err"), expected '$expected'"
    fi
}
compiled='compiled 1, from disk 0'
found='compiled 0, from disk 1'
fresh() { # makes a cache with the kernel; $entry is its file
    cache=$work/cache
    chmod -R u+w "$cache" 2>/dev/null
    rm -rf "$cache"
    env DEVTENSOR_CACHE_DIR="$cache" "$program" >/dev/null 2>&1
    entry=$(find "$cache" -name '*.bin')
    [ -f "$entry" ] || fail 'a first run writes one entry' "$(find "$cache")"
}
at() { # OFFSET BYTE: changes one byte of the entry
    printf "$2" | dd of="$entry" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
repaired() { # NAME: a damaged entry is compiled again, and the next run finds it valid
    says "$1: compiled again" "$compiled"
    says "$1: repaired" "$found"
}

cache=$work/none/cache
says 'a directory whose parent is missing' "$compiled"
fresh
says 'a second run finds the kernel' "$found"
says 'a warm cache needs no NVRTC' "$found" DEVTENSOR_NVRTC_PATH=/nowhere
says 'DEVTENSOR_CACHE=0' "$compiled" DEVTENSOR_CACHE=0

says "a kernel of the program" "$compiled" OWN=7
says "a second run finds it" "$found" OWN=7
says "another source" "$compiled" OWN=7.0

size=$(wc -c <"$entry")
truncate -s $((size - 1)) "$entry"; repaired 'one byte short'
truncate -s 20 "$entry"; repaired 'cut within the header'
: >"$entry"; repaired 'empty'
at $((size / 2)) '\377\000\252'; repaired 'changed bits'
at 8 '\002'; repaired 'another format'
at 16 '\001\002'; repaired 'another key'
at 0 'X'; repaired 'another magic'
head -c 100 /dev/zero >>"$entry"; repaired 'bytes after the end'
rm "$entry"; mkdir "$entry"
says 'a directory in its place' "$compiled"
rmdir "$entry" 2>/dev/null

# An image that the driver refuses (CUDA_ERROR_NO_BINARY_FOR_GPU) is compiled again, and its file
# replaced, if there is a compiler.
fresh
if [ -n "$ON_GPU" ]; then skip 'an image that the driver refuses' 'needs the simulated driver'; else
    env DEVTENSOR_CACHE_DIR="$cache" DEVTENSOR_NVRTC_PATH=/nowhere \
        SIMCUDA_FAIL=cuModuleLoadDataEx@1=209 "$program" >"$work/said" 2>&1
    grep -q '^failed: .*DEVTENSOR_NVRTC_PATH' "$work/said" && pass ||
        fail 'a refused image without NVRTC' "$(cat "$work/said")"
    says 'a refused image is kept without NVRTC' "$found" DEVTENSOR_NVRTC_PATH=/nowhere
    says 'a refused image is compiled again' 'compiled 1, from disk 1' \
        SIMCUDA_FAIL=cuModuleLoadDataEx@1=209
    [ "$entry" -nt "$work/said" ] && pass || fail 'the file of a refused image is replaced'
    says 'a replaced image is valid' "$found"
fi

fresh
chmod 500 "$cache" "$(dirname "$entry")"
says 'a read-only cache is read' "$found"
chmod u+w "$(dirname "$entry")"; rm "$entry"; chmod 500 "$(dirname "$entry")"
if [ "$(id -u)" = 0 ]; then skip 'a read-only cache is not written' 'root writes everywhere'; else
    says 'a read-only cache without the entry' "$compiled"
    says 'a read-only cache is not written' "$compiled"
fi

fresh
chmod 777 "$cache"
says 'a directory that others can write to' "$compiled"
chmod 700 "$cache"; chmod 777 "$(dirname "$entry")"
says 'a subdirectory that others can write to' "$compiled"
chmod 700 "$(dirname "$entry")"; chmod 666 "$entry"
says 'a file that others can write to' "$compiled"
fresh
mv "$cache" "$work/elsewhere"; ln -s elsewhere "$cache"
says 'a directory behind a link' "$found"
mv "$cache" "$work/link"; ln -s link "$cache"
says 'a directory behind two links' "$found"
chmod 777 "$work/elsewhere"
says 'a directory behind a link that others can write to' "$compiled"
rm "$cache" "$work/link"; rm -rf "$work/elsewhere"; ln -s elsewhere "$cache"
says 'a link to a directory that is missing' "$compiled"
says 'a link to a directory that was created' "$found"
rm "$cache"; ln -s cache "$cache"
says 'a link to itself' "$compiled"
rm "$cache"; rm -rf "$work/elsewhere"
fresh
mv "$entry" "$work/moved"; ln -s "$work/moved" "$entry"
says 'a file behind a link' "$compiled"
[ -f "$work/moved" ] && pass || fail 'the target of a link is not changed'
rm -f "$entry" "$work/moved"
mkfifo "$entry"
says 'a pipe' "$compiled"
rm -f "$entry"
if [ "$(id -u)" = 0 ]; then
    fresh
    chown 65534 "$entry"
    says "a file of another user" "$compiled"
    fresh
    chown 65534 "$cache"
    says "a directory of another user" "$compiled"
    chown 0 "$cache"
else
    skip "files and directories of another user" 'only root can give files away'
fi

# A full disk, as large as one page.
rm -rf "$cache"; mkdir "$cache"
if mount -t tmpfs -o size=4k,mode=700 tmpfs "$cache" 2>/dev/null; then
    says 'a full disk' "$compiled"
    [ -z "$(find "$cache" -type f)" ] && pass ||
        fail 'a full disk leaves nothing half written' "$(find "$cache" -type f)"
    umount "$cache"
else
    skip 'a full disk' 'mounting a small one is not allowed here'
fi

# Two processes that start together.
for round in 1 2 3; do
    rm -rf "$cache"
    DEVTENSOR_CACHE_DIR="$cache" "$program" >"$work/one" 2>&1 &
    DEVTENSOR_CACHE_DIR="$cache" "$program" >"$work/two" 2>&1
    wait
    grep -q '^compiled' "$work/one" && grep -q '^compiled' "$work/two" && pass ||
        fail 'a race' "$(cat "$work/one" "$work/two")"
    says 'after a race the entry is valid' "$found"
    [ "$(find "$cache" -type f | wc -l)" = 1 ] && pass ||
        fail 'a race leaves one file' "$(find "$cache" -type f)"
done

fresh
says 'entries above the size limit are removed' "$compiled" DEVTENSOR_CACHE_SIZE=10 \
    DEVTENSOR_CACHE=1 DEVTENSOR_CACHE_DIR="$work/small"
[ -z "$(find "$work/small" -type f)" ] && pass ||
    fail 'the oldest entries are removed' "$(find "$work/small" -type f)"
# Four kernels of one process, where two fit.
rm -rf "$work/small"
most=$(($(wc -c <"$entry") * 5 / 2))
says 'entries of one process above the size limit' 'compiled 4, from disk 0' OWN=7,7.0,7.00,7.000 \
    DEVTENSOR_CACHE_SIZE=$most DEVTENSOR_CACHE_DIR="$work/small"
size=$(find "$work/small" -type f -exec cat {} + | wc -c)
[ "$size" -le "$most" ] && pass || fail 'the size limit' "$size bytes, expected at most $most"
cache=
says 'no home' "$compiled" HOME=
says 'a home that does not exist' "$compiled" HOME=/nowhere/at/all
mkdir "$work/home"
says 'a fresh home' "$compiled" HOME="$work/home"
says 'a home with a cache' "$found" HOME="$work/home"
says 'XDG_CACHE_HOME' "$compiled" HOME="$work/home" XDG_CACHE_HOME="$work/home"
says 'XDG_CACHE_HOME again' "$found" XDG_CACHE_HOME="$work/home"
finish
