"""Writes files.txt: .npy and gzip files as others write them, one a line, in hexadecimal.

Run with NumPy 1.24 (python3 -m pip install numpy==1.24.4); the tests themselves need no Python. Deterministic.

    npy_save DTYPE SHAPE HEX     what numpy.save writes for element i of the rule in value(); SHAPE "-": no axes
    npy_read DTYPE SHAPE HEX     the same elements, stored in another way, which are read as DTYPE
    gz_ok RULE N HEX             a gzip file of an IDX file of N bytes, byte i being what rule() says
    gz_bad REASON HEX            a gzip file that must be refused, and words of the reason
"""
import io
import os
import struct
import sys
import zlib

import numpy as np

assert np.__version__.startswith("1.24"), np.__version__
OUT = []


def value(i, dtype):
    if dtype == "bool":
        return i % 3 == 1
    if dtype in ("int8", "int16", "int32", "int64"):
        return i * 37 % 251 - 125
    if dtype.startswith("u"):
        return i * 37 % 251
    return (i * 7919 % 2003 - 1001) * 0.37


def array(dtype, shape):
    n = int(np.prod(shape))
    return np.array([value(i, dtype) for i in range(n)], np.float64 if dtype.startswith("f") else None).astype(dtype).reshape(shape)


def name(shape):
    return ",".join(map(str, shape)) or "-"


def npy():
    for dtype in ("float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool"):
        for shape in ((), (1,), (3,), (2, 3), (0,), (2, 0, 3), (1, 2, 1, 2, 1, 2, 1, 2), (12,), (120, 1)):
            if shape == (120, 1) and dtype != "uint8":
                continue
            file = io.BytesIO()
            np.save(file, array(dtype, shape))
            OUT.append("npy_save %s %s %s" % (dtype, name(shape), file.getvalue().hex()))
    stored = {"float16": "f2", "float32": "f4", "float64": "f8", "int8": "i1", "uint8": "u1", "int32": "i4", "int64": "i8", "bool": "b1"}
    extra = {"int32": ("i2", "u2"), "int64": ("u4", "u8")}
    for dtype, code in stored.items():
        for code in (code,) + extra.get(dtype, ()):
            source = {"u2": "uint16", "u4": "uint32", "u8": "uint64", "i2": "int16"}.get(code, dtype)
            for order, version, shape, fortran in ((">", (1, 0), (2, 3), False), ("<", (2, 0), (3,), False), ("<", (3, 0), (2, 2), False),
                                                   ("<", (1, 0), (2, 3, 4), True), (">", (1, 0), (4, 3), True), ("<", (1, 0), (), True)):
                a = array(source, shape).astype(order + code)
                a = np.asfortranarray(a) if fortran and shape else a
                file = io.BytesIO()
                np.lib.format.write_array(file, a, version=version)
                OUT.append("npy_read %s %s %s" % (dtype, name(shape), file.getvalue().hex()))


def rule(kind, n):
    if kind == "zeros":
        return bytes(n)
    if kind == "pattern":
        return bytes(i * 7919 % 251 for i in range(n))
    if kind == "random":
        x, out = 1, bytearray()
        for _ in range(n):
            x = (x * 1664525 + 1013904223) & 0xffffffff
            out.append(x >> 24)
        return bytes(out)
    out, a, b, symbol = bytearray(), 1, 1, 0  # "skewed": symbol k comes Fibonacci(k) times
    while len(out) < n:
        out += bytes([symbol]) * a
        a, b, symbol = b, a + b, symbol + 1
    return bytes(out[:n])


def idx(kind, n):
    return struct.pack(">BBBBI", 0, 0, 8, 1, n) + rule(kind, n)


def deflate(data, level=9, strategy=zlib.Z_DEFAULT_STRATEGY):
    c = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    return c.compress(data) + c.flush()


def member(data, body=None, flags=0, extra=b"", crc=None, length=None, header_crc=None):
    head = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\x02\x03"
    if flags & 4:
        head += struct.pack("<H", len(extra)) + extra
    if flags & 8:
        head += b"name of a file.idx\0"
    if flags & 16:
        head += b"a comment\0"
    if flags & 2:
        head += struct.pack("<H", zlib.crc32(head) & 0xffff if header_crc is None else header_crc)
    return head + (deflate(data) if body is None else body) + struct.pack(
        "<II", zlib.crc32(data) if crc is None else crc, len(data) & 0xffffffff if length is None else length)


def stored_block(data, last):
    return bytes([last]) + struct.pack("<HH", len(data), len(data) ^ 0xffff) + data


def gz():
    def good(kind, n, data):
        OUT.append("gz_ok %s %d %s" % (kind, n, data.hex()))

    for kind, n in (("zeros", 0), ("zeros", 1), ("zeros", 5000), ("pattern", 3000), ("random", 700), ("skewed", 2000)):
        d = idx(kind, n)
        for level, strategy in ((0, 0), (1, 0), (9, 0), (9, zlib.Z_FIXED), (9, zlib.Z_HUFFMAN_ONLY), (9, zlib.Z_RLE)):
            good(kind, n, member(d, deflate(d, level, strategy)))
    d = idx("skewed", 17000)
    good("skewed", 17000, member(d, deflate(d, 9, zlib.Z_HUFFMAN_ONLY)))
    d = idx("pattern", 100)
    for flags in (1, 2, 4, 8, 16, 30, 31):
        good("pattern", 100, member(d, flags=flags, extra=b"AB\2\0xy"))
    good("pattern", 100, member(d, flags=4, extra=b""))
    good("pattern", 100, member(d[:50]) + member(d[50:]))
    good("pattern", 100, member(b"") + member(d[:3], flags=8) + member(d[3:], stored_block(d[3:], 1)) + member(b""))
    good("pattern", 100, member(d) + bytes(13))
    good("pattern", 100, member(d, stored_block(d[:7], 0) + stored_block(b"", 0) + stored_block(d[7:], 1)))

    def bad(reason, data):
        OUT.append("gz_bad %s %s" % (reason.replace(" ", "_"), data.hex()))

    ends, contradicts = "ends in the middle", "contradicts itself"
    bad("checksum is wrong", member(d, crc=1))
    bad("another length", member(d, length=107))
    bad("unknown method", b"\x1f\x8b\x07" + member(d)[3:])
    bad("unknown method or flag", member(d)[:3] + b"\x20" + member(d)[4:])
    bad("checksum of its header", member(d, flags=2, header_crc=77))
    bad("not gzip follows", member(d) + b"x")
    bad("not gzip follows", member(d) + b"\x1f\x8c")
    bad("not gzip follows", member(d) + b"\x1e\x8b")
    bad(contradicts, member(d, b"\x01\x05\0\0\0hello"))
    bad(ends, member(d, b"\x01\x05\0\xfa\xff"))
    bad(ends, b"\x1f\x8b")
    bad(ends, member(d, flags=4, extra=bytes(300))[:200])
    bad(ends, b"\x1f\x8b\x08\x08\0\0\0\0\0\3name without end")
    bad("but there are more", member(idx("zeros", 100) + bytes(200000)))
    bad("but there are more", member(idx("zeros", 100) + b"x"))
    bad("takes 108 bytes, but there are 107", member(idx("zeros", 100)[:-1]))
    bad("but there are at most", member(struct.pack(">BBBBII", 0, 0, 8, 2, 65535, 65535) + b"abc"))
    bad("not an IDX file", member(b""))
    fixed = Bits().number(1, 1).number(1, 2)
    # A match may not reach before its own member, whatever stands there; and the fast loop, which needs input behind the match,
    # finds that as well as the careful one.
    before = fixed.copy().code(0x30 + 97, 8).code(1, 7).code(4, 5).number(0, 1)  # "a", then 3 bytes from 5 bytes ago
    bad("before its beginning", member(d[:50]) + member(d[50:], before.bytes()))
    bad("before its beginning", member(d[:50]) + member(d[50:], before.copy().number(0, 400).bytes()))
    bad("before its beginning", member(d, before.copy().number(0, 400).bytes()))
    for reason, bits in (
            ("no known type", Bits().number(1, 1).number(3, 2)),
            ("before its beginning", fixed.copy().code(0x30, 8).code(1, 7).code(1, 5)),
            ("length without meaning", fixed.copy().code(0b11000110, 8).code(0, 5)),
            ("distance without meaning", fixed.copy().code(0x30, 8).code(1, 7).code(30, 5)),
            ("too many codes", Bits().number(1, 1).number(2, 2).number(30, 5).number(0, 5).number(0, 4)),
            ("too many codes", Bits().number(1, 1).number(2, 2).number(0, 5).number(30, 5).number(0, 4)),
            ("not a tree", dynamic({c: 1 for c in range(19)}, [])),
            ("not a tree", dynamic({0: 2, 1: 2}, [])),
            ("before the first", dynamic({16: 1, 0: 1}, [(16, 0, 2)])),
            ("too many code lengths", dynamic({18: 1, 1: 1}, [(18, 127, 7), (18, 127, 7)])),
            ("end of a block", dynamic({18: 1, 1: 1}, [(1,), (1,), (18, 127, 7), (18, 107, 7)])),
            ("not a tree", dynamic({18: 2, 1: 2, 2: 2, 0: 2}, [(1,), (1,), (18, 127, 7), (18, 104, 7), (0,), (1,), (0,)])),
            ("without meaning", dynamic({18: 2, 1: 2, 2: 2, 0: 2},
                                        [(18, 127, 7), (18, 107, 7), (1,), (0,)]).code(1, 1))):
        bad(reason, member(d, bits.bytes()))


class Bits:
    """Writes deflate by hand."""

    def __init__(self, bits=()):
        self.bits = list(bits)

    def copy(self):
        return Bits(self.bits)

    def number(self, value, n):
        self.bits += [value >> i & 1 for i in range(n)]
        return self

    def code(self, value, n):
        self.bits += [value >> i & 1 for i in reversed(range(n))]
        return self

    def bytes(self):
        bits = self.bits + [0] * 64
        return bytes(sum(bits[i + k] << k for k in range(8)) for i in range(0, len(bits) // 8 * 8, 8))


def dynamic(lengths, symbols):
    """A dynamic block with 257 literal codes and 1 distance code, whose code lengths are given as symbols."""
    bits = Bits().number(1, 1).number(2, 2).number(0, 5).number(0, 5).number(15, 4)
    for symbol in (16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15):
        bits.number(lengths.get(symbol, 0), 3)
    codes, code = {}, 0
    for length in range(1, 8):
        for symbol in sorted(s for s in lengths if lengths[s] == length):
            codes[symbol] = code
            code += 1
        code <<= 1
    for symbol in symbols:
        bits.code(codes[symbol[0]], lengths[symbol[0]])
        if len(symbol) == 3:
            bits.number(symbol[1], symbol[2])
    return bits


npy()
gz()
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files.txt")
with open(path, "w", newline="\n") as file:
    file.write("\n".join(OUT) + "\n")
sys.stdout.write("%s: %d files\n" % (path, len(OUT)))
