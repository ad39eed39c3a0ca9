"""JAX's cases, each one jitted function."""
import jax
import jax.numpy as jnp
import lenet64
import numpy as np
from inputs import RANGES, Missing, axes_of, matrix, values


def along(op, a):
    x, axis = jnp.asarray(matrix(a)), axes_of(a)
    if op == "layernorm":
        def f(v):
            centered = v - v.mean(-1, keepdims=True)
            return centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)
    elif op == "transpose":
        def f(v):
            return jnp.copy(v.T)
    elif op == "softmax":
        f = jax.nn.softmax
    elif op == "topk":
        def f(v):
            return jax.lax.top_k(v, a.get("k", 1))[0]
    elif op in ("sum", "mean", "var", "max", "argmax", "cumsum", "sort", "argsort"):
        def f(v):
            return getattr(jnp, op)(v, axis=axis)
    else:
        raise Missing(op)
    g = jax.jit(f)
    return lambda: g(x).block_until_ready()


# ---- LeNet ----
def layer(v, w, b):
    v = jax.lax.conv(v, w, (1, 1), "VALID") + b[None, :, None, None]
    return jax.lax.reduce_window(jax.nn.relu(v), -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2),
                                 "VALID")


def scores(p, x):
    v = layer(layer(x, p[0], p[1]), p[2], p[3]).reshape(x.shape[0], -1)
    v = jax.nn.relu(v @ p[4].T + p[5])
    return jax.nn.relu(v @ p[6].T + p[7]) @ p[8].T + p[9]


def loss(p, x, labels):
    return -jax.nn.log_softmax(scores(p, x))[jnp.arange(x.shape[0]), labels].mean()


def stepper(rate):
    return jax.jit(lambda p, x, y: [v - rate * g
                                    for v, g in zip(p,
                                                    jax.grad(loss)(p, x, y))], donate_argnums=0)


def weights():
    return [jnp.asarray(w) for w in lenet64.weights()]


def lenet_step(n):
    x, labels = (jnp.asarray(v) for v in lenet64.batch(n))
    state, update = weights(), stepper(lenet64.RATE)

    def run():
        nonlocal state
        state = update(state, x, labels)
        jax.block_until_ready(state)

    def gradient():
        first = lenet64.weights()[0]
        return (first - np.asarray(update(weights(), x, labels)[0])) / np.float32(lenet64.RATE)
    run.result = gradient
    return run


def lenet_epoch():
    found, test = lenet64.fashion_mnist(True), lenet64.fashion_mnist(False)
    if found is None or test is None:
        raise Missing("Fashion-MNIST is not here")
    images, labels = found
    state, update = weights(), stepper(lenet64.EPOCH_RATE)
    generator = np.random.default_rng(1)
    classes = jax.jit(lambda p, x: scores(p, x).argmax(-1))
    size = lenet64.EPOCH_BATCH

    def ready(bytes_):
        return (bytes_.astype(np.float32)[:, None] * np.float32(1 / 255) -
                np.float32(0.13)) / np.float32(0.31)

    def epoch():
        nonlocal state
        order = generator.permutation(len(labels))
        for at in range(0, len(labels), size):
            picked = order[at:at + size]
            state = update(state, ready(images[picked]), labels[picked])
        jax.block_until_ready(state)

    def accuracy():
        right = sum(
            int((np.asarray(classes(state, ready(test[0][i:i + 1000]))) == test[1][i:i +
                                                                                   1000]).sum())
            for i in range(0, len(test[1]), 1000))
        return np.float32(right / len(test[1]))
    epoch.result = accuracy
    return epoch


def cases(_threads):
    def case(op, a, _form):
        if op in RANGES and not op.endswith("_chain"):
            x = jnp.asarray(values(1, a["n"], *RANGES[op]))
            f = jax.jit(jax.scipy.special.erf if op == "erf" else getattr(jax.nn, op) if op in (
                "gelu", "relu", "sigmoid") else getattr(jnp, op))
            return lambda: f(x).block_until_ready()
        if "rows" in a:
            return along(op, a)
        if op == "lenet_step":
            return lenet_step(a["batch"])
        if op == "lenet_epoch":
            return lenet_epoch()
        if op == "lenet_infer":
            p, x, f = weights(), jnp.asarray(lenet64.batch(a["batch"])[0]), jax.jit(scores)
            return lambda: f(p, x).block_until_ready()
        raise Missing(op)
    return case, lambda y: np.ascontiguousarray(y, np.float32)
