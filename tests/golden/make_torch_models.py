"""Writes layers, and whole models, with their inputs and the results of PyTorch, to torch/.

Run with PyTorch 2 (python3 -m pip install torch safetensors); the tests themselves need no Python. The weights are drawn
from fixed seeds. Other versions of PyTorch may round the last digits otherwise, so the committed files are the reference.

    layers.safetensors   float64. CASE.weight.*: a state_dict. CASE.x, .h0, .q ..: inputs. CASE.y, .hn ..: results.
                         CASE.grad.*: gradients of sum(y * cos(0, 1, 2, ..)), and the same with hn and cn
    cnn.safetensors      float32, the state_dict of a convolutional net in evaluation
    lstm.safetensors     float32, the state_dict of an LSTM on tokens
    models.safetensors   cnn.x, cnn.y; lstm.x, lstm.y: inputs and results of the two
"""
import os
import sys

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch")


def save(name, arrays):
    path = os.path.join(HERE, name)
    save_file({key: value.detach().contiguous() for key, value in arrays.items()}, path)
    print("%s: %d arrays, %d bytes" % (name, len(arrays), os.path.getsize(path)))


def weighed(*arrays):
    """Returns one number whose gradient to every element of the arrays is another cosine."""
    return sum((a * torch.cos(torch.arange(a.numel(), dtype=a.dtype)).reshape(a.shape)).sum() for a in arrays)


# ---- recurrent layers ----
def recurrent(out, case, kind, size, hidden, batch_first=False, **options):
    torch.manual_seed(len(out))
    layer = kind(size, hidden, batch_first=batch_first, dtype=torch.float64, **options)
    rows = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    x = torch.randn((3, 4, size) if batch_first else (4, 3, size), dtype=torch.float64, requires_grad=True)
    states = [torch.randn(rows, 3, hidden, dtype=torch.float64, requires_grad=True) for _ in range(1 + (kind is nn.LSTM))]
    y, last = layer(x, tuple(states) if kind is nn.LSTM else states[0])
    last = last if kind is nn.LSTM else (last,)
    inputs = {"x": x}
    inputs.update(zip(("h0", "c0"), states))
    weighed(y, *last).backward()
    out.update({"%s.%s" % (case, name): value for name, value in inputs.items()})
    out.update({"%s.grad.%s" % (case, name): value.grad for name, value in inputs.items()})
    for name, value in layer.named_parameters():
        out["%s.weight.%s" % (case, name)] = value
        out["%s.grad.%s" % (case, name)] = value.grad
    out["%s.y" % case] = y
    out["%s.zeros" % case] = layer(x)[0]
    out.update({"%s.%s" % (case, name): value for name, value in zip(("hn", "cn"), last)})


def attention(out, case, mask=None, groups=4, **options):
    torch.manual_seed(len(out))
    shapes = {"q": (2, 4, 3, 5), "k": (2, groups, 3, 5), "v": (2, groups, 3, 2)}
    arrays = {name: torch.randn(shape, dtype=torch.float64, requires_grad=True) for name, shape in shapes.items()}
    if mask is bool:
        options["attn_mask"] = torch.rand(2, 1, 3, 3) < 0.7
        options["attn_mask"][..., 0] = True
    elif mask is float:
        options["attn_mask"] = torch.randn(4, 1, 3, dtype=torch.float64)
    y = functional.scaled_dot_product_attention(*arrays.values(), enable_gqa=groups != 4, **options)
    weighed(y).backward()
    out.update({"%s.%s" % (case, name): value for name, value in arrays.items()})
    out.update({"%s.grad.%s" % (case, name): value.grad for name, value in arrays.items()})
    if mask:
        out["%s.mask" % case] = options["attn_mask"]
    out["%s.y" % case] = y


def layers():
    out = {}
    recurrent(out, "rnn", nn.RNN, 5, 4)
    recurrent(out, "rnn_relu", nn.RNN, 2, 3, num_layers=2, nonlinearity="relu")
    recurrent(out, "lstm", nn.LSTM, 5, 4)
    recurrent(out, "lstm_all", nn.LSTM, 3, 2, num_layers=2, bidirectional=True)
    recurrent(out, "lstm_no_bias", nn.LSTM, 3, 2, batch_first=True, bias=False)
    recurrent(out, "gru", nn.GRU, 5, 4)
    recurrent(out, "gru_all", nn.GRU, 3, 2, num_layers=2, bidirectional=True, batch_first=True)
    recurrent(out, "gru_no_bias", nn.GRU, 3, 2, bias=False)
    for case, options in (("attention", {}), ("attention_causal", {"is_causal": True}), ("attention_bool", {"mask": bool}),
                          ("attention_float", {"mask": float, "scale": 0.3}), ("attention_grouped", {"groups": 2})):
        attention(out, case, **options)
    save("layers.safetensors", out)


# ---- whole models ----
class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 8, num_layers=2, batch_first=True)
        self.head = nn.Linear(8, 5)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def models():
    torch.manual_seed(7)
    cnn = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3),
                        nn.ReLU(), nn.Flatten(), nn.Linear(8 * 4 * 4, 10))
    nn.init.uniform_(cnn[1].weight, 0.5, 2)
    nn.init.uniform_(cnn[1].bias, -1, 1)
    for _ in range(5):  # moves the running statistics
        cnn(torch.randn(8, 1, 12, 12) * 2 + 1)
    lstm = Tagger()
    x, tokens = torch.randn(3, 1, 12, 12), torch.randint(20, (3, 7))
    with torch.no_grad():
        out = {"cnn.x": x, "cnn.y": cnn.eval()(x), "lstm.x": tokens, "lstm.y": lstm(tokens)}
    save("cnn.safetensors", cnn.state_dict())
    save("lstm.safetensors", lstm.state_dict())
    save("models.safetensors", out)


if __name__ == "__main__":
    os.makedirs(HERE, exist_ok=True)
    parts = sys.argv[1:] or ["layers", "models"]
    if "layers" in parts:
        layers()
    if "models" in parts:
        models()
