"""Models the speed of the innermost loops of the 64-bit ARM target; prints a Markdown table.

usage: neon_model.py OBJECT OBJDUMP LLVM_MCA

A loop is a backward branch within a function that has no other backward branch inside. llvm-mca
simulates it with its dependences and with all data in L1. The number of instructions that a core
decodes per cycle bounds the result as well, because llvm-mca's dispatch width counts its own
micro-operations. LLVM's model of Apple's cores describes one of 2013. So the column for the M1 is
a bound by the numbers of its units, without dependences.
"""
import re
import subprocess
import sys
import tempfile

# name for llvm-mca, title, instructions per cycle, FMA units of 16 bytes
CORES = [("neoverse-n1", "N1", 4, 2), ("neoverse-n2", "N2", 5, 2),
         ("neoverse-v1", "V1", 8, 4), ("neoverse-v2", "V2", 8, 4), (None, "Apple M1", 8, 4)]
ITERATIONS = 200
CALL = 10000  # the cost of a path with a call
FMA = r"^fml[as] "
STORES = r"^st(u?r|p) q"
LOADS = r"^ld(u?r|p) q"
VECTOR = r"\bv\d+\.(4s|2d|16b|8h)\b"

# title, function without prefix, the instruction that the loop has most of, one that it must not
# have, elements per iteration, negative per such instruction; None: part of the peak of the FMAs
KERNELS = [
    ("product, 6x16", "gemm_tile_6_4", FMA, None, None),
    ("product, 6x16, packing B", "gemm_multiply_packing", FMA, None, None),
    ("product, 6x12", "gemm_tile_6_3", FMA, None, None),
    ("product, 12x8", "gemm_tile_12_2", FMA, None, None),
    ("product, 12x4", "gemm_tile_12_1", FMA, None, None),
    ("product, 4x16", "gemm_tile_4_4", FMA, None, None),
    ("product, 2x16", "gemm_tile_2_4", FMA, None, None),
    ("product, float64, 6x8", "gemm_dtile_6_4", FMA, None, None),
    ("dot products", "gemm_dots", FMA, None, None),
    ("dot products, float64", "gemm_ddots", FMA, None, None),
    ("product with a vector", "gemm_combine", FMA, None, None),
    ("convolution, one channel", "conv_filter", FMA, None, None),
    ("convolution, weights gradient", "conv_correlate", FMA, None, None),
    ("exp", "ew_exp", STORES, None, 16),
    ("log", "ew_log", STORES, None, 16),
    ("tanh", "ew_tanh", STORES, None, 16),
    ("sigmoid", "ew_sigmoid", STORES, None, 16),
    ("sin", "ew_sin", STORES, None, 16),
    ("erf", "ew_erf", STORES, None, 16),
    ("gelu", "ew_gelu", STORES, None, 16),
    ("add", "ew_add", STORES, None, 16),
    ("maximum", "ew_maximum", STORES, None, 16),
    ("sum of rows", "sum_rows", r"^fcvtl", r"\.4h|shl", -8),
    ("sum of columns", "sum_columns", r"^fcvtl", r"\.4h|shl", -8),
    ("maximum of rows", "extreme_rows", LOADS, None, 64),
    ("sorting, a pass over 16 rows", "net_near", r"^smin ", None, 64),
    ("ranks by counting", "ranks", r"^cmgt ", None, 32),
]


def functions(objdump, path):
    """Returns {name: [(address, text)]}."""
    listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], check=True,
                             stdout=subprocess.PIPE, universal_newlines=True).stdout
    found, body = {}, None
    for line in listing.splitlines():
        head = re.match(r"^[0-9a-f]+ <(.*)>:$", line)
        if head:
            body = found.setdefault(head.group(1), [])
            continue
        one = re.match(r"^\s*([0-9a-f]+):\s+(.*)$", line)
        if one and body is not None:
            text = re.sub(r"\s+//.*$", "", one.group(2)).replace("\t", " ").strip()
            body.append((int(one.group(1), 16), text))
    return found


def target(text):
    """Returns the address that a direct branch jumps to, or None."""
    branch = re.match(r"^(?:b|b\.\w+|cbn?z \w+,|tbn?z \w+, #\d+,) +([0-9a-f]+) <", text)
    return int(branch.group(1), 16) if branch else None


def path_of(loop, choose):
    """Returns the instructions of one iteration, the one that `choose`, min or max, prefers."""
    index = {address: i for i, (address, _) in enumerate(loop)}
    best = [None] * len(loop) + [(0, [])]
    for i in reversed(range(len(loop))):
        address, text = loop[i]
        to = target(text)
        ways = [i + 1]
        if to in index and to > address:
            ways = [index[to]] + ([] if text.startswith("b ") else ways)
        elif i + 1 < len(loop) and (text.startswith("b ") or text == "ret"):
            continue
        ways = [best[way] for way in ways if best[way]]
        if ways:
            cost, rest = choose(ways, key=lambda way: way[0])
            best[i] = (cost + (CALL if text.startswith("bl ") else 1), [text] + rest)
    return best[0][1] if best[0] else []


def innermost(body):
    """Returns the innermost loops of a function as lists of (address, instruction)."""
    start = body[0][0]
    back = [(target(t), a) for a, t in body if target(t) is not None and start <= target(t) <= a]
    spans = [(low, high) for low, high in back
             if not any((l, h) != (low, high) and low <= l and h <= high for l, h in back)]
    return [[one for one in body if low <= one[0] <= high] for low, high in spans]


def count(pattern, loop):
    return sum(bool(re.search(pattern, text)) for text in loop)


def find(code, name, most, unless):
    """Returns one iteration. Rare cases make it longer, so the shortest one that has `most`."""
    found = []
    for full, body in code.items():
        if re.match(r"dvti_neon_%s(\.|$)" % name, full) and body:
            for loop in innermost(body):
                for choose in (min, max):
                    path = path_of(loop, choose)
                    if count(most, path) and not count(r"^bl ", path):
                        found.append(path)
                        break
    found = [path for path in found if not (unless and count(unless, path))]
    return max(found, key=lambda path: (count(most, path), count(VECTOR, path)), default=None)


def simulated(mca, core, loop):
    """Returns the cycles of one iteration."""
    lines = [".Lloop:"]
    for text in loop:
        lines.append(re.sub(r"[0-9a-f]+ <.*>$", ".Lloop", text))
    cycles = []
    with tempfile.NamedTemporaryFile("w", suffix=".s") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        for times in (ITERATIONS, 2 * ITERATIONS):
            shown = subprocess.run(
                [mca, "-mtriple=aarch64", "-mcpu=" + core, "-iterations=%d" % times, file.name],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            if shown.returncode:
                sys.exit("llvm-mca: " + shown.stderr)
            cycles.append(int(re.search(r"Total Cycles:\s+(\d+)", shown.stdout).group(1)))
    return (cycles[1] - cycles[0]) / ITERATIONS


def units(loop):
    """Returns the bound of Apple's M1: 4 vector units, 3 loads, 2 stores per cycle."""
    broadcasts = count(r"^ld1r|^ld1 .*\[\d\]", loop)
    vector = count(r"^[a-z]\w* (v\d+\.|[sd]\d+, [vsd]\d)", loop) + broadcasts
    vector += count(r"^tbl v\d+\.16b, \{.*[-,].*\}", loop) + 3 * count(r"^f(div|sqrt) v", loop)
    loads = count(r"^ld", loop) + count(r"^ldp q", loop)
    stores = count(r"^st", loop) + count(r"^stp q", loop)
    return max(vector / 4, loads / 3, stores / 2, (loads + stores) / 4)


def main():
    path, objdump, mca = sys.argv[1:]
    code = functions(objdump, path)
    print("| loop | instructions | %s |" % " | ".join(title for _, title, _, _ in CORES))
    print("|---|" + "---:|" * (1 + len(CORES)))
    for title, name, most, unless, elements in KERNELS:
        loop = find(code, name, most, unless)
        if not loop:
            print("| %s | no loop found |%s" % (title, " |" * len(CORES)))
            continue
        cells = []
        for core, _, width, pipes in CORES:
            cycles = max(simulated(mca, core, loop) if core else units(loop), len(loop) / width)
            if most == FMA:
                shown = "%.0f %%" % (100 * count(FMA, loop) / pipes / cycles)
            else:
                done = elements if elements > 0 else -elements * count(most, loop)
                shown = "%.2f / cycle" % (done / cycles)
            cells.append("%.1f: %s" % (cycles, shown))
        print("| %s | %d | %s |" % (title, len(loop), " | ".join(cells)))


if __name__ == "__main__":
    main()
