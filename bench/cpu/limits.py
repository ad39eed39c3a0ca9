"""Settings that limit the peers to AVX2 on a processor with AVX-512."""
import os
import re
import subprocess

ONEDNN = {"ONEDNN_MAX_CPU_ISA": "AVX2"}
OPENBLAS = {"OPENBLAS_CORETYPE": "Haswell"}
AVX2 = {
    "dnnl": {**ONEDNN, "DNNL_MAX_CPU_ISA": "AVX2"},  # the name before oneDNN 3
    "xsmm": {"LIBXSMM_TARGET": "hsw"},
    "torch": {**ONEDNN, "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "jax": {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
}
# Our programs, which read DEVTENSOR_ISA themselves.
OWN = ("sleef", "machine")
UNLIMITED = ("mlx", "numexpr", "onnxruntime")


def numpy_limits():
    """Returns the settings for NumPy, which warns about features that it does not dispatch."""
    import numpy as np  # only here: others of our scripts run without it
    core = np._core._multiarray_umath  # where NumPy keeps the list
    wide = [name for name in core.__cpu_dispatch__
            if name.startswith(("AVX512", "X86_V4")) and core.__cpu_features__.get(name)]
    return {**OPENBLAS, "NPY_DISABLE_CPU_FEATURES": " ".join(wide)}


def selected(command, settings):
    """Returns the kernels that BLIS or OpenBLAS selects with these settings, in its own word."""
    found = subprocess.run(
        command, input="case mm m=8 n=8 k=8\nsample 0\nquit\n", capture_output=True, text=True,
        check=False, env={**os.environ, **settings, "BLIS_ARCH_DEBUG": "1",
                          "OPENBLAS_VERBOSE": "2"})
    named = re.search(r"sub-configuration '(\w+)'|^Core: (\w+)", found.stderr, re.M)
    return (named[1] or named[2]).lower() if named else ""


def known_processor(name, processor, command, limited):
    """Returns settings that make BLIS or OpenBLAS use AVX-512, or AVX2 with `limited`.

    Their own choice remains, except for processors that they do not know: for those BLIS uses
    generic code and OpenBLAS AVX2, both several times slower.
    """
    if processor.isa not in ("avx512", "avx2"):
        return {}
    variable, unknown = {"blis": ("BLIS_ARCH_TYPE", ("generic", )),
                         "openblas": ("OPENBLAS_CORETYPE", ("haswell", "zen"))}[name]
    wide = processor.has_avx512 and not limited
    own = selected(command, {})
    if not own or (not limited and (own not in unknown or (name == "openblas" and not wide))):
        return {}
    if name == "openblas":
        value = "SkylakeX" if wide else "Haswell"
    else:
        value = "skx" if wide else "zen3" if processor.kind.startswith("amd") else "haswell"
    settings = {variable: value}
    return settings if selected(command, settings) == value.lower() else {}


class Limits:
    """Environment variables of the participants for the ISA target of the table."""

    def __init__(self, processor):
        self.on = processor.isa == "avx2" and processor.has_avx512
        self.isa = os.environ.get("DEVTENSOR_ISA", "")
        self.peers = {**AVX2, "numpy": numpy_limits()} if self.on else {}

    def add(self, name, processor, command):
        """Adds the settings of BLIS or OpenBLAS, which depend on the copy that runs."""
        self.peers[name] = known_processor(name, processor, command, self.on)
        if name == "openblas" and not self.on:
            self.peers["numpy"] = self.peers[name]

    def variables(self, name):
        """Returns the variables of a participant; DEVTENSOR_ISA is for our own programs."""
        found = dict(self.peers.get(name.split(" ")[0], {}))
        if self.isa:
            found["DEVTENSOR_ISA"] = self.isa
        return found

    def text(self):
        """Returns the sentences of the table about these settings."""
        named = "; ".join(f"{name} ({', '.join(f'{k}={v}' for k, v in variables.items())})"
                          for name, variables in sorted(self.peers.items()) if variables)
        if not self.on:
            return "No peer is limited to an ISA target." + (
                f" Settings for a processor that the library does not know: {named}."
                if named else "")
        free = UNLIMITED + tuple(n for n in ("blis", "openblas") if not self.peers.get(n))
        return (f"Limited to AVX2: {named}; {' and '.join(OWN)} (DEVTENSOR_ISA=avx2). "
                f"Not limited, for lack of a setting: {', '.join(free)}.")
