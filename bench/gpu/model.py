#!/usr/bin/env python3
"""A model of GPU time from the counts of tests/cuda/model/expected.txt; no GPU is measured.

usage: model.py            the table for a terminal
       model.py --table    the same as Markdown, for docs/GPU_MODEL.md
"""
import os
import sys

COUNTS = os.path.join(os.path.dirname(__file__), "../../tests/cuda/model/expected.txt")
PROCESSORS = 4  # that the simulator had: the model is this part of a GPU

# Processors, GHz, TB/s of DRAM. Per clock and processor: warp instructions of f32, f64,
# conversions, integers; multiply-adds of dense tensor cores in f16 and TF32. Sources: NVIDIA's data
# sheets of H100 SXM, H200 SXM and A100 SXM 80 GB; the throughput table of the CUDA programming
# guide (arithmetic instructions, 8.0 and 9.0). In all of them 4 instructions are issued per clock,
# 128 bytes go through L1 or shared memory, and L2 is assumed to be no limit.
GPUS = {
    "H200": dict(sm=132, ghz=1.83, tb=4.8, fp32=4, fp64=2, convert=2, integer=2, half=8,
                 macs16=2048, macs_tf32=1024),
    "H100": dict(sm=132, ghz=1.83, tb=3.35, fp32=4, fp64=2, convert=2, integer=2, half=8,
                 macs16=2048, macs_tf32=1024),
    "A100": dict(sm=108, ghz=1.41, tb=2.04, fp32=2, fp64=1, convert=2, integer=2, half=8,
                 macs16=1024, macs_tf32=512),
}
# mma.sync is expected to reach 63 % of the tensor cores of sm_90 (README of
# waynehacking8/blackwell-tensorcore-kernels), and all of those of sm_80.
MMA_SYNC = {"H200": 0.63, "H100": 0.63, "A100": 1.0}
ISSUED = ("fp32", "fp64", "half", "special", "convert", "integer", "exchange", "memory", "control",
          "matrix")


def read(path):
    """Returns the rows: name, numbers of the row, and (kernel, numbers by "group name")."""
    rows = []
    for line in open(path, encoding="ascii"):
        words = line.split()
        if words[0] == "row":
            rows.append((line[4:].strip(), {}, []))
        elif rows:
            numbers = rows[-1][1]
            start = 1
            if words[0] == "kernel":
                rows[-1][2].append((words[1], {}))
                start = 2
            if rows[-1][2]:
                numbers = rows[-1][2][-1][1]
            for name, value in zip(words[start::2], words[start + 1::2]):
                numbers[words[0] + " " + name] = int(value)
    return rows


def limits(kernel, gpu, name):
    """Returns the microseconds of each resource of one kernel's launches."""
    spec = GPUS[gpu]

    def n(name):
        return kernel.get(name, 0)

    clocks = PROCESSORS * spec["ghz"] * 1e3  # per microsecond, of all processors
    bandwidth = spec["tb"] * 1e6 * PROCESSORS / spec["sm"]  # bytes per microsecond
    blocks = n("kernel blocks") / n("kernel launches")
    rounds = -(-blocks // PROCESSORS) * PROCESSORS / blocks  # the busiest processor
    global_passes = sum(max(n(g + " requests"), n(g + " sectors") / 4) for g in ("loads", "stores"))
    shared = n("shared_loads wavefronts") + n("shared_stores wavefronts") + n("atomics requests")
    alu = sum(n("instructions " + c) / spec[c] for c in ("fp64", "convert", "integer", "half"))
    return {
        "DRAM": 32 * (n("loads touched") + n("stores touched")) / bandwidth,
        "L1 and shared memory": (global_passes + shared) / clocks * rounds,
        "f32": n("instructions fp32") / spec["fp32"] / clocks * rounds,
        "other arithmetic": alu / clocks * rounds,
        "special functions": 2 * n("instructions special") / clocks * rounds,
        "tensor cores": (n("instructions macs16") / spec["macs16"] +
                         n("instructions macs_tf32") / spec["macs_tf32"]) / clocks * rounds /
                        (1 if "wgmma" in name else MMA_SYNC[gpu]),
        "issue": sum(n("instructions " + c) for c in ISSUED) / 4 / clocks * rounds,
    }


def least_time(row, gpu):
    """Returns the microseconds below which the row cannot get on this GPU."""
    spec = GPUS[gpu]
    name, numbers, _ = row
    part = PROCESSORS / spec["sm"]
    moved = numbers["least bytes"] / (spec["tb"] * 1e6 * part)
    rate = 128 if gpu != "A100" else 64  # f32 multiply-adds per clock and processor
    if "bf16" in name or " f16" in name:
        rate = spec["macs16"]
    elif "tf32" in name:
        rate = spec["macs_tf32"]
    elif "in TF32 parts" in name:
        rate = spec["macs_tf32"] / 3  # three products
    return max(moved, numbers.get("least macs", 0) / (rate * PROCESSORS * spec["ghz"] * 1e3))


def modeled(row, gpu):
    """Returns the microseconds of the row, and the resource that takes most of them."""
    time, by = 0, {}
    for name, kernel in row[2]:
        all_limits = limits(kernel, gpu, name)
        bound = max(all_limits, key=all_limits.get)
        time += all_limits[bound]
        by[bound] = by.get(bound, 0) + all_limits[bound]
    return time, max(by, key=by.get)


def total(row, name):
    return sum(kernel.get(name, 0) for _, kernel in row[2])


def useful(row, group):
    sectors = total(row, group + " sectors")
    return "%.0f %%" % (100 * total(row, group + " bytes") / (32 * sectors)) if sectors else "-"


def conflicts(row):
    least = total(row, "shared_loads least") + total(row, "shared_stores least")
    passes = total(row, "shared_loads wavefronts") + total(row, "shared_stores wavefronts")
    return "%.2f" % (passes / least) if least else "-"


def warps(row):
    """Returns the fewest resident warps per processor of its kernels, of 64."""
    found = [kernel["ptxas resident"] * -(-kernel["kernel threads"] // 32)
             for _, kernel in row[2] if "ptxas resident" in kernel]
    return str(min(found)) if found else "-"


HEAD = ("row", "launches", "us", "limited by", "H200", "H100", "A100", "loads", "stores",
        "wavefronts", "warps")


def cells(row):
    time, bound = modeled(row, "H200")
    parts = ["%.0f %%" % min(100, 100 * least_time(row, g) / modeled(row, g)[0]) for g in GPUS]
    return (row[0], str(total(row, "kernel launches")), "%.1f" % time, bound, *parts,
            useful(row, "loads"), useful(row, "stores"), conflicts(row), warps(row))


def main():
    table = [HEAD] + [cells(row) for row in read(COUNTS)]
    if "--table" in sys.argv:
        print("| " + " | ".join(HEAD) + " |")
        print("|" + "---|" * len(HEAD))
        for line in table[1:]:
            print("| " + " | ".join(line) + " |")
        return
    print("A model of %d processors of each GPU; nothing is measured (docs/GPU_MODEL.md).\n"
          % PROCESSORS)
    widths = [max(len(line[i]) for line in table) for i in range(len(HEAD))]
    for line in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


if __name__ == "__main__":
    main()
