"""The processes of a comparison: ours, and one per peer. All answer the commands of runner.h."""
import os
import subprocess
import time

from libraries import PLACES, Libraries
from limits import Limits

HERE = os.path.dirname(os.path.abspath(__file__))


def data_folder():
    """Returns the first directory with Fashion-MNIST, searched as by the examples; else None."""
    for place in (os.environ.get("DEVTENSOR_DATA"), "data", "../shared/data"):
        if place and any(
                os.path.exists(os.path.join(place, "fashion-train-images-idx3-ubyte" + end))
                or os.path.exists(os.path.join(place, "train-images-idx3-ubyte" + end))
                for end in ("", ".gz")):
            return os.path.abspath(place)
    return None


class Participant:
    """bound: pins each thread of an OpenMP library to a core; faster on an idle machine.

    more: further environment variables.
    """

    def __init__(self, name, command, threads, bound=True, more=None):
        keep = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "DEVTENSOR_"))}
        several = {
            k: str(threads)
            for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                      "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "DEVTENSOR_NUM_THREADS")
        }
        pinned = ["taskset", "-c", "0"] if threads == 1 else []
        set_up = {
            **keep,
            **several,
            "DEVTENSOR_CUDA": "0",
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
            "THP_MEM_ALLOC_ENABLE": "1",  # PyTorch's large blocks in huge pages
            "DEVTENSOR_DATA": data_folder() or "",
            # Code that torch.compile made for another ISA target gives wrong results.
            "TORCHINDUCTOR_CACHE_DIR": os.path.abspath(
                f"build/bench-inductor/{os.environ.get('DEVTENSOR_ISA', 'best')}"),
            **(more or {})
        }
        if name == "jax 512":  # XLA prefers 256-bit vectors; 512 bits help only some functions
            set_up["XLA_FLAGS"] = f"{keep.get('XLA_FLAGS', '')} --xla_cpu_prefer_vector_width=512"
        if bound:
            set_up["OMP_PROC_BIND"] = "true"
        self.name = name
        self.process = subprocess.Popen([*pinned, *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=set_up)

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip() or "no answer"
        except OSError:
            return "no answer"

    def sample(self, seconds):
        """Returns seconds per call; None on failure."""
        answer = self.ask(f"sample {seconds}")
        return None if answer.startswith("no") else float(answer.split()[0])

    def rests(self):
        """Waits up to 0.5 s until none of its threads runs, so as not to disturb the others."""
        until, seen = time.perf_counter() + 0.5, 0
        while seen < 2 and time.perf_counter() < until:
            seen = 0 if self.runs() else seen + 1
            time.sleep(0.002)

    def runs(self):
        tasks = f"/proc/{self.process.pid}/task"
        for task in os.listdir(tasks):
            try:
                with open(f"{tasks}/{task}/stat", encoding="ascii") as file:
                    if file.read().rpartition(")")[2].split()[0] == "R":
                        return True
            except OSError:
                pass  # this thread has ended
        return False

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


class Participants:
    """Starts participants on demand, one set for each number of threads.

    limits: the settings for the ISA target of the table. used: the version of each library.
    """

    def __init__(self, build, python, processor, bound=True):
        self.build, self.python, self.bound = build, python, bound
        self.processor, self.limits = processor, Limits(processor)
        self.libraries, self.used, self.commands = Libraries(build, python), {}, {}
        self.running, self.missing = {}, {}

    def start(self, name, threads):
        """Starts a new process; returns None when that fails."""
        if name == "jax 512" and self.limits.on:
            return None
        if name in self.commands:
            candidates = [self.commands[name]]
        elif name in PLACES:
            candidates = self.libraries.candidates(name)
        else:
            candidates = [(self.command(name, threads), None)]
        for command, version in candidates:
            if name in ("blis", "openblas"):
                self.limits.add(name, self.processor, command)
            made = Participant(name, command, threads, self.bound, self.limits.variables(name))
            if made.ask("sample 0") != "no answer":
                if name in PLACES:
                    self.commands[name], self.used[name] = (command, version), version
                return made
            made.end()
        self.missing[name] = "could not be started"
        return None

    def get(self, name, threads):
        key = name, threads
        if key not in self.running and name not in self.missing:
            made = self.start(name, threads)
            if made:
                self.running[key] = made
        return self.running.get(key)

    def command(self, name, threads):
        if name in ("devtensor", "machine"):
            return [f"{self.build}/bench/cpu/{'ours' if name == 'devtensor' else name}"]
        library, *form = name.split(" ")
        return [self.python, os.path.join(HERE, "peer.py"), library, str(threads), *form]

    def end(self):
        for one in self.running.values():
            one.end()
        self.running = {}
