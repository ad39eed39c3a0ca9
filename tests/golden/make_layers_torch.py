"""Writes layers_torch.txt: results and gradients of PyTorch's layers and losses in float64.

Inputs are exact numbers of wave(), which tests/unit/golden_layers.h computes too, so the file has
results only. A line is a name and its numbers: CASE.y, then CASE.d0, CASE.d1 ... for the gradients
of sum(y * wave(shape of y, 7)) to the inputs. Made with PyTorch 2.
"""
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
LINES = []


def wave(shape, seed):
    """Numbers from -2 to 2 in steps of 1/16."""
    n = 1
    for extent in shape:
        n *= extent
    values = [((i * 37 + seed * 11) % 64 - 32) / 16 for i in range(n)]
    return torch.tensor(values).reshape(shape)


def line(name, values):
    LINES.append(" ".join([name] + ["%.17g" % v for v in values.detach().reshape(-1).tolist()]))


def case(name, function, *shapes):
    """Input number k is wave(shapes[k], k + 1)."""
    inputs = [wave(shape, k + 1).requires_grad_() for k, shape in enumerate(shapes)]
    y = function(*inputs)
    (y * wave(y.shape, 7)).sum().backward()
    line(name + ".y", y)
    for k, x in enumerate(inputs):
        line("%s.d%d" % (name, k), x.grad)


def activations():
    x = (4, 17)
    case("leaky_relu", lambda x: F.leaky_relu(3 * x, 0.125), x)
    case("elu", lambda x: F.elu(3 * x, 0.75), x)
    case("selu", lambda x: F.selu(3 * x), x)
    case("silu", lambda x: F.silu(3 * x), x)
    case("mish", lambda x: F.mish(3 * x), x)
    case("hard_sigmoid", lambda x: F.relu6(1.9 * x + 3) / 6, x)  # hardsigmoid rounds 1 / 6
    case("hard_swish", lambda x: F.hardswish(1.9 * x), x)
    case("prelu1", F.prelu, (3, 4, 5), (1,))
    case("prelu4", F.prelu, (3, 4, 5), (4,))
    case("glu", lambda x: F.glu(x, 1), (3, 4, 5))
    case("swiglu", lambda x: F.silu(x[:, :2]) * x[:, 2:], (3, 4, 5))


def norms():
    case("rms_norm", lambda x, g: F.rms_norm(x, (6,), g, 1e-5), (2, 3, 6), (6,))
    case("rms_norm_alone", lambda x: F.rms_norm(x, (6,), None, 1e-5), (2, 3, 6))
    case("group_norm", lambda x, g, b: F.group_norm(x, 2, g, b, 1e-5), (2, 4, 3, 2), (4,), (4,))
    case("group_norm_alone", lambda x: F.group_norm(x, 3, None, None, 1e-5), (4, 6))
    case("instance_norm", lambda x, g, b: F.instance_norm(x, None, None, g, b, True, 0.1, 1e-5),
         (2, 3, 5), (3,), (3,))


def losses():
    p, names = (5, 4), torch.tensor([0, 3, 1, 1, 2])
    weight = torch.tensor([0.5, 2.0, 1.0, 0.25])
    share = F.softmax(wave(p, 3), -1)
    sign = torch.tensor([1.0, -1, 1, -1, 1])
    each = {"reduction": "none"}
    case("ce_smooth", lambda x: F.cross_entropy(x, names, label_smoothing=0.125, **each), p)
    case("ce_weight", lambda x: F.cross_entropy(x, names, weight, label_smoothing=0.125, **each), p)
    case("ce_ignore", lambda x: F.cross_entropy(x, names, weight, ignore_index=1, **each), p)
    case("ce_shares", lambda x: F.cross_entropy(x, share, weight, label_smoothing=0.125, **each), p)
    case("nll", lambda x: F.nll_loss(F.log_softmax(x, -1), names, **each), p)
    case("kl", lambda x: F.kl_div(x, share, **each).mean(1), p)
    case("bce", lambda x: F.binary_cross_entropy_with_logits(
        x, (wave(p, 3) + 2) / 4, pos_weight=weight, **each).mean(1), p)
    case("poisson", lambda x: F.poisson_nll_loss(x, wave(p, 3) + 2, **each).mean(1), p)
    case("poisson_rate", lambda x: F.poisson_nll_loss(
        x + 3, wave(p, 3) + 2, log_input=False, eps=1e-8, **each).mean(1), p)
    case("cosine", lambda x, y: F.cosine_embedding_loss(x, y, sign, margin=0.25, **each), p, p)
    case("triplet", lambda a, b, c: F.relu(((b - a) ** 2 - (c - a) ** 2).sum(1) + 3), p, p, p)
    case("hinge", lambda x: F.relu(1 - x * sign[:, None]).mean(1), p)


def convolutions():
    case("conv1d", lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), (2, 4, 9), (6, 2, 3), (6,))
    case("conv1d_plain", F.conv1d, (2, 3, 7), (2, 3, 3))
    case("deconv2d", F.conv_transpose2d, (2, 3, 4, 3), (3, 2, 2, 3), (2,))
    case("deconv2d_all", lambda x, w, b: F.conv_transpose2d(
        x, w, b, (3, 2), (1, 2), (2, 1), 2, (1, 2)), (2, 4, 3, 4), (4, 3, 2, 3), (6,))
    case("deconv1d", lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), (2, 3, 5), (3, 4, 3),
         (4,))


def resizing():
    x = (2, 2, 3, 4)
    for name, size in (("x2", (6, 8)), ("odd", (5, 7)), ("down", (2, 3)), ("one", (1, 1))):
        case("nearest_" + name, lambda x: F.interpolate(x, size=size, mode="nearest"), x)
        for corners in (False, True):
            case("bilinear%d_%s" % (corners, name), lambda x: F.interpolate(
                x, size=size, mode="bilinear", align_corners=corners), x)
        case("adaptive_" + name, lambda x: F.adaptive_avg_pool2d(x, size), (2, 2, 5, 4))
    case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), (2, 3, 8))
    case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 8))


if __name__ == "__main__":
    for part in (activations, norms, losses, convolutions, resizing):
        part()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "layers_torch.txt")
    with open(path, "w", encoding="ascii") as out:
        out.write("\n".join(LINES) + "\n")
