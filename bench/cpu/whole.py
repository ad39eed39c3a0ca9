"""Rows of whole processes: time to the first result, peak memory of a training run, size."""
import os
import shutil
import statistics
import subprocess
import time

from participants import Participants, data_folder
from report import Line

FIRST = {"numpy": "import numpy as np; x = np.ones(2, np.float32); print((x + x).sum())",
         "torch": "import torch; x = torch.ones(2); print((x + x).sum().item())"}
START, MEMORY = "start of a process to its first result", "peak memory of a training run"
SIZE = "installed size"


def until_first_line(command):
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "DEVTENSOR_CUDA": "0",
                               "CUDA_VISIBLE_DEVICES": ""}) as process:
        line = process.stdout.readline()
        spent = time.perf_counter() - begin
        process.stdout.read()
    return spent if line.strip().startswith("4") and process.returncode == 0 else None


def start(build, python, runs):
    commands = {
        "devtensor": [f"{build}/bench/cpu/first"],
        **{name: [python, "-c", text]
           for name, text in FIRST.items()}
    }
    taken = {name: [] for name in commands}
    for name, command in commands.items():
        until_first_line(command)  # loads the files into the page cache
    for _ in range(runs):
        for name, command in commands.items():
            spent = until_first_line(command)
            if spent:
                taken[name].append(1000 * spent)
    return {name: statistics.median(t) for name, t in taken.items() if t}


def memory(build, python, processor, threads, epochs):
    """Returns MB of new processes after epochs of LeNet (batch 256) or two seconds of steps."""
    everybody, peaks = Participants(build, python, processor), {}
    case, seconds = ("case lenet_epoch", 0) if epochs else ("case lenet_step batch=256", 2)
    for name in ("devtensor", "torch", "torch channels_last", "torch compile",
                 "jax") if epochs else ("devtensor", "torch", "jax"):
        one = everybody.start(name, threads)
        if not one:
            continue
        if one.ask(case) == "ok" and one.sample(seconds):
            answer = one.ask("peak")
            if answer.isdigit():
                peaks[name] = int(answer) / 1024
        one.end()
    return peaks


def folder_size(path):
    return sum(
        os.lstat(os.path.join(root, file)).st_size for root, _, files in os.walk(path)
        for file in files)


def sizes(build, python):
    """Returns MB of our program, which needs only libc, and of packages without dependencies."""
    stripped = f"{build}/bench/cpu/first.stripped"
    shutil.copy(f"{build}/bench/cpu/first", stripped)
    subprocess.run(["strip", stripped], check=False)
    found = {"devtensor": os.path.getsize(stripped) / 1e6}
    for name in FIRST:
        where = subprocess.run([python, "-c", f"import {name}; print({name}.__path__[0])"],
                               capture_output=True, text=True).stdout.strip()
        if where:
            found[name] = (
                folder_size(where) +
                (folder_size(where + ".libs") if os.path.isdir(where + ".libs") else 0)) / 1e6
    return found


def lines(title, unit, found, bound):
    """Returns a table where less is better; the summary has the best peer over devtensor."""
    peers = {n: v for n, v in found.items() if n != "devtensor"}
    if "devtensor" not in found or not peers:
        return [f"## {title}\n\nNot measured: {', '.join(found) or 'nothing'} alone answered.\n"
                ], []
    ours, best = found["devtensor"], min(peers.values())
    head = "| " + unit + ", smaller is better | devtensor | " + " | ".join(
        peers) + " | the best over devtensor | torch over devtensor |\n" + "|---" * (len(peers) +
                                                                                     4) + "|\n"
    torch = peers["torch"] / ours if "torch" in peers else None
    cells = [f"{v:.3g}" for v in (ours, *peers.values())
             ] + [f"**{best / ours:.3g}**", f"{torch:.3g}" if torch else ""]
    row = f"| {bound} | " + " | ".join(cells) + " |\n"
    return [f"## {title}\n\n{head}{row}"], [(best / ours, torch)]


def sections(build, python, processor, widths, chosen, short):
    text, summary = [], []

    def add(title, threads, part):
        text.extend(part[0])
        summary.extend(Line(title, threads, 1, ratio, ratio, torch) for ratio, torch in part[1])
        print(*part[0], flush=True)
    if chosen("whole programs", START):
        add(
            START, None,
            lines(START, "ms", start(build, python, 3 if short else 11),
                  "two arrays added and summed, printed"))
    if chosen("whole programs", MEMORY) and 1 in widths:
        epochs = data_folder() is not None and not short
        what = "LeNet, batch 256, " + ("epochs of Fashion-MNIST"
                                       if epochs else "steps for two seconds")
        add(MEMORY, 1, lines(MEMORY, "MB", memory(build, python, processor, 1, epochs), what))
    if chosen("whole programs", SIZE):
        add(SIZE, None,
            lines(SIZE, "MB", sizes(build, python), "the program, stripped; the packages alone"))
    return text, summary
