"""PyTorch's cases, written for speed as a user would."""
import lenet64
import numpy as np
import torch
import torch.nn.functional as F
from inputs import RANGES, Missing, axes_of, conv_inputs, factors, matrix, values


def tensor(x):
    return torch.from_numpy(np.ascontiguousarray(x))


def product(a):
    x, y = (tensor(v) for v in factors(a))
    x, y = x.T if a.get("ta") else x, y.T if a.get("tb") else y
    out = torch.empty(a["m"], a["n"])
    return lambda: torch.mm(x, y, out=out)


def product_norms(a):
    x, y = (tensor(values(s, 10000).reshape(100, 100)) for s in (1, 2))

    def norms():
        total = 0.0
        for _ in range(a["count"]):
            total += torch.linalg.norm(torch.mm(x, y)).item()
        return torch.tensor(total)
    return norms


def function(op, a):
    x = tensor(values(1, a["n"], *RANGES[op]))
    if op in ("gelu", "relu"):
        f = F.gelu if op == "gelu" else torch.relu
        return lambda: f(x)
    f, out = getattr(torch, op), torch.empty_like(x)
    return lambda: f(x, out=out)


def along(op, a):
    x, axis = tensor(matrix(a)), axes_of(a)
    if op in ("sum", "mean"):
        f = getattr(torch, op)
        return (lambda: f(x)) if axis is None else (lambda: f(x, axis))
    if op == "max":
        return (lambda: torch.amax(x)) if axis is None else (lambda: torch.amax(x, axis))
    return {
        "var": lambda: torch.var(x, axis, correction=0), "argmax": lambda: torch.argmax(x, axis),
        "softmax": lambda: torch.softmax(x, -1),
        "layernorm": lambda: F.layer_norm(x, (a["columns"], )),
        "cumsum": lambda: torch.cumsum(x, axis), "sort": lambda: torch.sort(x, axis)[0],
        "argsort": lambda: torch.argsort(x, dim=axis, stable=True),
        "topk": lambda: torch.topk(x, a.get("k", 1), axis)[0],
        "transpose": lambda: x.T.contiguous()
    }[op]


def convolution(a, form):
    x, w, b = (tensor(v) for v in conv_inputs(a))
    if form == "channels_last":
        x, w = (v.to(memory_format=torch.channels_last) for v in (x, w))
    if not a.get("backward"):
        def forward():
            with torch.inference_mode():
                return F.conv2d(x, w, b, a.get("stride", 1), a.get("pad", 0))
        return forward
    for v in (x, w, b):
        v.requires_grad_(True)

    def backward():
        for v in (x, w, b):
            v.grad = None
        y = F.conv2d(x, w, b, a.get("stride", 1), a.get("pad", 0))
        y.backward(torch.ones_like(y))
        return w.grad
    return backward


# ---- LeNet ----
def lenet(form):
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Conv2d(6, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                              torch.nn.Flatten(), torch.nn.Linear(400, 120), torch.nn.ReLU(),
                              torch.nn.Linear(120, 84), torch.nn.ReLU(), torch.nn.Linear(84, 10))
    if form == "channels_last":
        net = net.to(memory_format=torch.channels_last)
    reset(net)
    return net


def reset(net):
    with torch.no_grad():
        for p, w in zip(net.parameters(), lenet64.weights()):
            p.copy_(tensor(w))


def lenet_step(a, form):
    images, labels = (tensor(v) for v in lenet64.batch(a["batch"]))
    if form == "channels_last":
        images = images.to(memory_format=torch.channels_last)
    net = lenet(form)
    optimizer = torch.optim.SGD(net.parameters(), lr=lenet64.RATE)

    def loss_of(x, y):
        return F.cross_entropy(net(x), y)
    if form == "compile":
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(images, labels).backward()
        optimizer.step()

    def gradient():
        reset(net)
        before = net[0].weight.detach().clone()
        step()
        return (before - net[0].weight.detach()) / lenet64.RATE
    step.result = gradient
    return step


def lenet_infer(a, form):
    x = tensor(lenet64.batch(a["batch"])[0])
    net = lenet(form).eval()
    if form == "channels_last":
        x = x.to(memory_format=torch.channels_last)
    run = torch.compile(net) if form == "compile" else net

    def infer():
        with torch.inference_mode():
            return run(x)
    return infer


class Images(torch.utils.data.Dataset):
    """Bytes in memory; __getitems__ lets the loader fetch a batch at once."""

    def __init__(self, images, labels):
        self.images, self.labels = tensor(images), tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitems__(self, indices):
        at = torch.as_tensor(indices)
        return (self.images[at].unsqueeze(1).float().div_(255).sub_(0.13).div_(0.31),
                self.labels[at])


def lenet_epoch(form):
    found = lenet64.fashion_mnist(True), lenet64.fashion_mnist(False)
    if None in found:
        raise Missing("Fashion-MNIST is not here")
    loader, test = (torch.utils.data.DataLoader(Images(*d), batch_size=lenet64.EPOCH_BATCH,
                                                shuffle=train, collate_fn=lambda b: b)
                    for d, train in zip(found, (True, False)))
    net = lenet(form)
    optimizer = torch.optim.SGD(net.parameters(), lr=lenet64.EPOCH_RATE)

    def loss_of(x, y):
        return F.cross_entropy(net(x), y)
    if form == "compile":
        loss_of = torch.compile(loss_of)

    def laid(x):
        return x.to(memory_format=torch.channels_last) if form == "channels_last" else x

    def epoch():
        total = torch.zeros(())
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = loss_of(laid(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return total

    def accuracy():
        with torch.inference_mode():
            right = sum(int((net(laid(x)).argmax(-1) == y).sum()) for x, y in test)
        return torch.tensor(right / len(found[1][1]))
    epoch.result = accuracy
    return epoch


def cases(threads):
    torch.set_num_threads(threads)

    def case(op, a, form):
        if op == "mm":
            return product(a)
        if op == "mm_norms":
            return product_norms(a)
        if op.endswith("_chain"):
            z, y = tensor(values(1, a["n"], *RANGES[op])), tensor(values(2, a["n"]))
            return {"exp_chain": lambda: (z + 2).exp() * y,
                    "log_chain": lambda: z ** 0.5 - torch.log(torch.abs(z))}[op]
        if op in RANGES:
            return function(op, a)
        if op == "add":
            x, y = tensor(values(1, a["n"])), tensor(values(2, a["n"]))
            return lambda: x + y
        if "rows" in a:
            return along(op, a)
        if op == "conv":
            return convolution(a, form)
        if op == "maxpool":
            x = tensor(values(1, 64 * 20 * 24 * 24).reshape(64, 20, 24, 24))
            if form == "channels_last":
                x = x.to(memory_format=torch.channels_last)
            return lambda: F.max_pool2d(x, 2)
        if op in ("uniform", "normal"):
            out = torch.empty(a["n"])
            return (lambda: out.uniform_()) if op == "uniform" else (lambda: out.normal_())
        if op == "lenet_step":
            return lenet_step(a, form)
        if op == "lenet_infer":
            return lenet_infer(a, form)
        if op == "lenet_epoch":
            return lenet_epoch(form)
        raise Missing(op)
    return case, lambda y: y.detach().to(torch.float32).contiguous().numpy()
