"""LeNet of the comparison: common weights, data, and its scores and first gradient in float64."""
import gzip
import os

import numpy as np
from inputs import values

SHAPES = [(6, 1, 5, 5), (6, ), (16, 6, 3, 3), (16, ), (120, 400), (120, ), (84, 120), (84, ),
          (10, 84), (10, )]
INPUTS = [25, 54, 400, 120, 84]
RATE = 0.01
EPOCH_RATE, EPOCH_BATCH = 0.1, 256


def weights():
    return [
        values(11 + i, int(np.prod(s)), -INPUTS[i // 2]**-0.5, INPUTS[i // 2]**-0.5).reshape(s)
        for i, s in enumerate(SHAPES)
    ]


def batch(n):
    return values(1, n * 784).reshape(n, 1, 28, 28), np.arange(n) % 10


def fashion_mnist(train):
    """Returns images as bytes and classes; None when the files are missing."""
    folder = os.environ.get("DEVTENSOR_DATA", "")
    found = []
    for kind, header in (("images-idx3", 16), ("labels-idx1", 8)):
        stem = f"{'train' if train else 't10k'}-{kind}-ubyte"
        for name, opener in ((f"fashion-{stem}.gz", gzip.open), (stem + ".gz", gzip.open),
                             ("fashion-" + stem, open), (stem, open)):
            path = os.path.join(folder, name)
            if folder and os.path.exists(path):
                with opener(path, "rb") as file:
                    found.append(np.frombuffer(file.read(), np.uint8)[header:])
                break
    if len(found) < 2:
        return None
    return found[0].reshape(-1, 28, 28).copy(), found[1].astype(np.int64)


def windows(x, k):
    return np.lib.stride_tricks.sliding_window_view(x, (k, k), (2, 3))


def pool(x):
    """Returns the maximum of each 2 x 2 window and its position as 0 or 1; assumes no ties."""
    n, c, h, w = x.shape
    h, w = h // 2, w // 2
    parts = x[:, :, :2 * h, :2 * w].reshape(n, c, h, 2, w, 2)
    y = parts.max((3, 5))
    return y, parts == y[:, :, :, None, :, None]


def unpool(g, where, shape):
    out = np.zeros(shape)
    n, c, h, w = g.shape
    out[:, :, :2 * h, :2 * w] = (g[:, :, :, None, :, None] * where).reshape(n, c, 2 * h, 2 * w)
    return out


def forward(n):
    """Returns the scores of the batch, and the values that the gradient needs."""
    p = [w.astype(np.float64) for w in weights()]
    x, _ = batch(n)
    x = x.astype(np.float64)
    a = np.einsum("nchwrs,ocrs->nohw", windows(x, 5), p[0], optimize=True) + p[1][None, :, None,
                                                                                  None]
    b, where_b = pool(np.maximum(a, 0))
    c = np.einsum("nchwrs,ocrs->nohw", windows(b, 3), p[2], optimize=True) + p[3][None, :, None,
                                                                                  None]
    d, where_d = pool(np.maximum(c, 0))
    flat = d.reshape(n, -1)
    e = flat @ p[4].T + p[5]
    f = np.maximum(e, 0) @ p[6].T + p[7]
    return np.maximum(f, 0) @ p[8].T + p[9], (p, x, a, where_b, c, where_d, d, e, f)


def gradient(n):
    """Returns the gradient of the mean loss with respect to the first convolution's kernels."""
    scores, (p, x, a, where_b, c, where_d, d, e, f) = forward(n)
    _, labels = batch(n)
    g = np.exp(scores - scores.max(1, keepdims=True))
    g /= g.sum(1, keepdims=True)
    g[np.arange(n), labels] -= 1
    g = (g / n @ p[8]) * (f > 0)
    g = (g @ p[6]) * (e > 0)
    g = unpool((g @ p[4]).reshape(d.shape), where_d, c.shape) * (c > 0)
    padded = np.pad(g, ((0, 0), (0, 0), (2, 2), (2, 2)))
    g = np.einsum("nohwrs,ocrs->nchw", windows(padded, 3), p[2][:, :, ::-1, ::-1], optimize=True)
    g = unpool(g, where_b, a.shape) * (a > 0)
    return np.einsum("nchwrs,nohw->ocrs", windows(x, 5), g, optimize=True)
