"""The processor of a table: its name gives the file, its caches and ISA target the heading."""
import glob
import os
import platform
import re
import subprocess
import typing

VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "HygonGenuine": "hygon"}
# Linux reports implementer and part of an Arm processor instead of vendor, family and model.
CORES = {
    "amd-17-31": "Zen 2", "amd-19-01": "Zen 3", "amd-19-11": "Zen 4", "amd-19-61": "Zen 4",
    "amd-1a-02": "Zen 5", "amd-1a-11": "Zen 5c", "amd-1a-44": "Zen 5", "intel-06-3f": "Haswell",
    "intel-06-4f": "Broadwell", "intel-06-55": "Skylake-SP or Cascade Lake",
    "intel-06-6a": "Ice Lake-SP", "intel-06-8f": "Sapphire Rapids",
    "intel-06-cf": "Emerald Rapids", "intel-06-ad": "Granite Rapids", "arm-41-d0c": "Neoverse N1",
    "arm-41-d40": "Neoverse V1", "arm-41-d4f": "Neoverse V2"
}
ISA_NAMES = {"avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON"}


class Processor(typing.NamedTuple):
    """kind: vendor, family and model in hexadecimal. model: the name the processor reports."""
    kind: str
    model: str
    caches: str
    isa: str
    has_avx512: bool

    @property
    def stem(self):
        """Returns the name of its table, without the ending."""
        return f"cpu-{self.kind}-{self.isa}"

    @property
    def title(self):
        return f"{named(self.model, self.kind)}, {ISA_NAMES.get(self.isa, self.isa)}"


def fields():
    """Returns the lines of /proc/cpuinfo for the first processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            first = file.read().split("\n\n")[0]
    except OSError:
        return {}
    return dict(re.findall(r"^(.*?)\s*: (.*)$", first, re.M))


def caches():
    """Returns the caches of the first processor, as in "L1d 32 KiB, L2 1 MiB"."""
    found = []
    for index in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        values = []
        for name in ("level", "type", "size"):
            with open(os.path.join(index, name), encoding="ascii") as file:
                values.append(file.read().strip())
        level, kind, size = values
        if kind == "Instruction":
            continue
        kib = int(size.rstrip("K"))
        size = f"{kib // 1024} MiB" if kib % 1024 == 0 else f"{kib} KiB"
        found.append(f"L{level}{'d' if kind == 'Data' else ''} {size}")
    return ", ".join(found) or "caches unknown"


def kind_of(info):
    """Returns vendor, family and model; info: the result of fields()."""
    if "vendor_id" in info:
        vendor = VENDORS.get(info["vendor_id"], info["vendor_id"].lower())
        return f"{vendor}-{int(info['cpu family']):02x}-{int(info['model']):02x}"
    if "CPU implementer" in info:
        return f"arm-{int(info['CPU implementer'], 0):02x}-{int(info['CPU part'], 0):03x}"
    return re.sub(r"\W+", "-", platform.machine().lower()) or "unknown"


def model_of(info):
    return " ".join(info.get("model name", platform.machine()).split())


def named(model, kind):
    """Returns the name for a heading: "AMD EPYC amd-19-11 (Zen 4)"."""
    return f"{model} {kind}" + (f" ({CORES[kind]})" if kind in CORES else "")


def this_processor(program):
    """Returns this processor; program: our runner, which knows the ISA target."""
    info = fields()
    kind = kind_of(info)
    asked = os.environ.get("DEVTENSOR_ISA")
    isa = subprocess.run([program, "isa"], capture_output=True, text=True,
                         check=True).stdout.strip()
    if asked and asked != isa:
        raise SystemExit(f"DEVTENSOR_ISA={asked}: this processor or build has no such ISA target")
    has_avx512 = "avx512f" in info.get("flags", "").split()
    return Processor(kind, model_of(info), caches(), isa, has_avx512)


if __name__ == "__main__":  # for scripts: the kind, and the name on a second line
    about = fields()
    print(kind_of(about))
    print(named(model_of(about), kind_of(about)))
