"""The rows in PyTorch, written for speed as a user would."""
import gzip
import os
import time

import torch
import torch.nn.functional as F
from peer import Case, Missing

DTYPES = {"f32": torch.float32, "tf32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
GPU = os.environ.get("BENCH_TORCH_DEVICE", "cuda")


def drawn(*shape, dtype=torch.float32, high=1.0):
    return torch.empty(shape, device=GPU, dtype=dtype).uniform_(-high, high)


def relative(got, want):
    want = want.double()
    return float((got.double() - want).norm() / want.norm().clamp_min(1e-300))


def graphed(call):
    """Returns a replay of the call, captured after a warm-up on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()

    def replay():
        graph.replay()
        return result
    return replay


def chain(t):
    for _ in range(4):
        t = torch.tanh(t * 0.9 + 0.1)
    return t


def array_call(row):
    """Returns (function of the inputs, inputs) of rows of arrays."""
    op, n, dtype = row.op, row["n"], DTYPES[row.dtype]
    if op == "where":
        return torch.where, [drawn(n) > 0, drawn(n), drawn(n)]
    if op == "relu_gradient":
        def gradient(x, head):
            return torch.autograd.grad(torch.relu(x), x, head)[0]
        return gradient, [drawn(n).requires_grad_(), drawn(n)]
    if "rows" in row.arguments:
        x = drawn(row["rows"], row["columns"], dtype=dtype)
        axis = None if row["axis"] < 0 else row["axis"]
        return {
            "sum": (lambda t: t.sum(axis)) if axis is not None else torch.sum,
            "softmax": lambda t: torch.softmax(t, -1),
            "layer_norm": lambda t: F.layer_norm(t, (row["columns"], )),
            "transpose": lambda t: t.T.contiguous(),
            "sort": lambda t: torch.sort(t, -1)[0]
        }[op], [x]
    if op == "mm":
        a = drawn(*((row["k"], row["m"]) if row["ta"] else (row["m"], row["k"])), dtype=dtype)
        b = drawn(*((row["n"], row["k"]) if row["tb"] else (row["k"], row["n"])), dtype=dtype)
        return torch.mm, [a.T if row["ta"] else a, b.T if row["tb"] else b]
    if op in ("uniform", "normal"):
        out = torch.empty(n, device=GPU)
        return (lambda: out.uniform_()) if op == "uniform" else (lambda: out.normal_()), []
    calls = {"copy": torch.clone, "add": torch.add, "exp": torch.exp, "chain": chain,
             "dispatch": torch.add}
    if op not in calls:
        raise Missing(op)
    inputs = [drawn(n, high=4.0 if op == "exp" else 1.0)
              for _ in range(2 if op in ("add", "dispatch") else 1)]
    return calls[op], inputs


def convolution(row, form):
    dtype = DTYPES[row.dtype]
    x, w, b = (drawn(*shape, dtype=dtype) for shape in (
        (row["batch"], row["c"], row["h"], row["h"]), (row["o"], row["c"], row["k"], row["k"]),
        (row["o"], )))
    if form == "torch-channels_last":
        x, w = (v.to(memory_format=torch.channels_last) for v in (x, w))

    def forward(x, w, b):
        return F.conv2d(x, w, b, row["stride"], row["pad"])
    if not row["backward"]:
        return forward, [x, w, b]
    head = torch.empty_like(forward(x, w, b)).uniform_(-1, 1)

    def gradients(x, w, b, head):
        return torch.cat([g.reshape(-1) for g in
                          torch.autograd.grad(forward(x, w, b), (x, w, b), head)])
    return gradients, [*(v.requires_grad_() for v in (x, w, b)), head]


def as_reference(inputs):
    return [v.detach().double().requires_grad_(v.requires_grad) if v.is_floating_point() else v
            for v in inputs]


# ---- LeNet, as examples/lenet.h ----
def lenet():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Conv2d(6, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                               torch.nn.Flatten(), torch.nn.Linear(400, 120), torch.nn.ReLU(),
                               torch.nn.Linear(120, 84), torch.nn.ReLU(),
                               torch.nn.Linear(84, 10)).to(GPU)


def training_step(form, fed, batch):
    net = lenet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    here = "cpu" if fed else GPU
    images = torch.empty(batch, 1, 28, 28, device=here).uniform_(-1, 1)
    labels = torch.arange(batch, device=here) % 10
    if form == "torch-channels_last":
        net = net.to(memory_format=torch.channels_last)
        images = images.to(memory_format=torch.channels_last)

    def loss_of(x, y):
        return F.cross_entropy(net(x), y)
    if form == "torch-compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=form != "torch-graph")
        loss = loss_of(images.to(GPU), labels.to(GPU))
        loss.backward()
        optimizer.step()
        return loss.item() if fed else loss
    return graphed(step) if form == "torch-graph" else step


def read_idx(name):
    """Returns the bytes of an IDX file from the usual folders, as a tensor."""
    for folder in (os.environ.get("DEVTENSOR_DATA", ""), "data", "../shared/data", "shared/data"):
        for path, opened in ((f"{folder}/{name}.gz", gzip.open), (f"{folder}/{name}", open)):
            if folder and os.path.exists(path):
                with opened(path, "rb") as file:
                    values = bytearray(file.read())
                sizes = [int.from_bytes(values[4 + 4 * i:8 + 4 * i], "big")
                         for i in range(values[3])]
                return torch.frombuffer(values, dtype=torch.uint8,
                                        offset=4 + 4 * len(sizes)).reshape(sizes)
    raise Missing(f"{name} is not here")


class Training:
    """LeNet on MNIST: batches are made on the host, as in our row."""

    def __init__(self, row):
        self.adam = row.op == "mnist_099"
        self.batch = row["batch"]
        self.images, self.labels = self.data("train")
        self.tests = self.data("t10k")
        self.restart()

    @staticmethod
    def data(part):
        return (read_idx(f"mnist-{part}-images-idx3-ubyte"),
                read_idx(f"mnist-{part}-labels-idx1-ubyte").long())

    def restart(self):
        self.net = lenet()
        for layer in self.net:
            if hasattr(layer, "weight"):
                torch.nn.init.xavier_uniform_(layer.weight)
                torch.nn.init.zeros_(layer.bias)
        self.optimizer = (torch.optim.Adam(self.net.parameters(), lr=0.002)
                          if self.adam else
                          torch.optim.SGD(self.net.parameters(), lr=0.1))

    @staticmethod
    def normal(images):
        return images.unsqueeze(1).float().div_(255).sub_(0.13).div_(0.31)

    def epoch(self):
        total = 0.0
        for at in torch.randperm(len(self.labels)).split(self.batch):
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.net(self.normal(self.images[at]).to(GPU)),
                                   self.labels[at].to(GPU))
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def accuracy(self):
        right = 0
        with torch.inference_mode():
            for images, labels in zip(*(t.split(self.batch) for t in self.tests)):
                right += int((self.net(self.normal(images).to(GPU)).argmax(-1) ==
                              labels.to(GPU)).sum())
        return right / len(self.tests[1])

    def until_099(self):
        self.restart()
        for _ in range(30):
            self.epoch()
            if self.accuracy() >= 0.99:
                return
        raise RuntimeError("0.99 was not reached in 30 epochs")


class HostEvent:
    """Stands in for a CUDA event where a test runs the rows on the CPU."""

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass


class Library:
    name = "torch"

    def event(self):
        return HostEvent() if GPU == "cpu" else torch.cuda.Event(enable_timing=True)

    def seconds(self, first, last):
        return last.at - first.at if GPU == "cpu" else 1e-3 * first.elapsed_time(last)

    def wait(self):
        if GPU != "cpu":
            torch.cuda.synchronize()

    def trim(self):
        if GPU != "cpu":
            torch.cuda.empty_cache()

    def copy(self, traffic):
        """Returns a copy that moves `traffic` bytes, read and written."""
        a, b = (torch.empty(int(traffic / 2), dtype=torch.uint8, device=GPU) for _ in range(2))
        return lambda: b.copy_(a)

    def first(self):
        return f"loss {training_step('torch', True, 256)():g}"

    def host_case(self, row):
        count = row["bytes"] // 4
        if row.op == "allocate":
            return Case(lambda: torch.empty(count, device=GPU), clock="queued")
        here, there = torch.empty(count).uniform_(), drawn(count)
        call = (lambda: here.to(GPU)) if row.op == "upload" else there.cpu
        return Case(call, clock="wall")

    def case(self, row, form):
        tf32 = row.dtype == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        # Sums of float16 stay in float32, as ours.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cudnn.benchmark = True
        if row.op in ("allocate", "upload", "download"):
            return self.host_case(row)
        if row.op in ("lenet_resident", "lenet_fed"):
            fed = row.op == "lenet_fed"
            return Case(training_step(form, fed, row["batch"]), clock="wall" if fed else "events",
                        warm=5)
        if row.op in ("lenet_epoch", "mnist_099"):
            training = Training(row)
            call = training.epoch if row.op == "lenet_epoch" else training.until_099
            return Case(call, clock="wall", once=True)
        call, inputs = convolution(row, form) if row.op == "conv" else array_call(row)
        run = torch.compile(call) if form == "torch-compile" else call

        def bound():
            return run(*inputs)
        timed = graphed(bound) if form == "torch-graph" else bound
        if row.op in ("uniform", "normal"):
            return Case(timed)
        return Case(timed, lambda: relative(timed(), call(*as_reference(inputs))),
                    clock="queued" if row.op == "dispatch" else "events", warm=3)
