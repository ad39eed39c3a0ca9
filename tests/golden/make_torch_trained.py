"""Trains the nets of examples/classify.c and examples/language.c, and writes them to torch/.

    python3 tests/golden/make_torch_trained.py classify FOLDER   the folder has Fashion-MNIST's files
    python3 tests/golden/make_torch_trained.py language

Run with PyTorch 2 (python3 -m pip install torch safetensors numpy); each takes a minute or two. The committed files are
the reference, since other versions of PyTorch train other weights.

    torch/classify.safetensors  float16: the state_dict of a convolutional net. test.images, uint8 (16, 28, 28, 1), from
                                Fashion-MNIST (MIT license) and test.logits, float32 (16, 10), which PyTorch computes
                                from these weights. Metadata: classes, one a line
    torch/classify_*            two of its images as .png and .pgm, and the first four as .idx.gz
    torch/language.safetensors  float16: the state_dict of an LSTM on characters, trained on the lines of this repository.
                                test.N, float32 (characters, 4): the logits after each character of line N. Metadata:
                                characters, languages and lines, one a line
"""
import glob
import gzip
import os
import sys
import zlib

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../..")


def save(name, net, arrays, metadata):
    weights = {key: value.half() if value.is_floating_point() else value for key, value in net.state_dict().items()}
    net.load_state_dict({key: value.float() if value.is_floating_point() else value for key, value in weights.items()})
    net.eval()
    with torch.no_grad():
        weights.update(arrays(net))
    path = os.path.join(HERE, "torch", name)
    save_file({key: value.contiguous() for key, value in weights.items()}, path, metadata)
    print("%s: %d bytes" % (name, os.path.getsize(path)))


# ---- images ----
class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 8, 5, padding=2, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.norm2 = nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.fc1, self.fc2 = nn.Linear(16 * 7 * 7, 32), nn.Linear(32, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.norm1(self.conv1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.norm2(self.conv2(x))), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


def idx(folder, name):
    with gzip.open(os.path.join(folder, name)) as file:
        data = file.read()
    shape = [int.from_bytes(data[4 + 4 * i:8 + 4 * i], "big") for i in range(data[3])]
    return torch.tensor(np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape))


def write_images(images):
    """Writes one image as PNG, one as PGM, and four as IDX."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    def file(name, data):
        with open(os.path.join(HERE, "torch", name), "wb") as out:
            out.write(data)

    size = b"\0\0\0\x1c"
    rows = b"".join(b"\0" + bytes(row) for row in images[0].numpy())
    file("classify_0.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + size + b"\x08\0\0\0\0") +
         chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))
    file("classify_1.pgm", b"P5 28 28 255\n" + images[1].numpy().tobytes())
    file("classify_0_to_3.idx.gz", gzip.compress(b"\0\0\x08\x03\0\0\0\x04" + size + size + images[:4].numpy().tobytes(),
                                                 9, mtime=0))


def classify(folder):
    torch.manual_seed(1)
    x, y = idx(folder, "fashion-train-images-idx3-ubyte.gz"), idx(folder, "fashion-train-labels-idx1-ubyte.gz").long()
    test_x, test_y = idx(folder, "fashion-t10k-images-idx3-ubyte.gz"), idx(folder, "fashion-t10k-labels-idx1-ubyte.gz")
    net, epochs, batch = Classifier(), 6, 128
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=epochs * (len(x) // batch))
    for epoch in range(epochs):
        for rows in torch.randperm(len(x))[:len(x) // batch * batch].view(-1, batch):
            loss = functional.cross_entropy(net(x[rows, None] / 255), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        print("epoch %d, loss %.3f" % (epoch, loss.item()), flush=True)
    images = test_x[:16]
    save("classify.safetensors", net, lambda net: {"test.images": images[..., None], "test.logits": net(images[:, None] / 255)},
         {"classes": "T-shirt\ntrousers\npullover\ndress\ncoat\nsandal\nshirt\nsneaker\nbag\nankle boot"})
    with torch.no_grad():
        print("test accuracy %.4f" % (net(test_x[:, None] / 255).argmax(1) == test_y).float().mean())
    write_images(images)


# ---- lines of text ----
CHARACTERS = "".join(chr(c) for c in range(32, 127))
LANGUAGES = ["C", "Python", "shell", "English"]
LONGEST = 48
LINES = ["for (i = 0; i < n; i++)", "def forward(self, x):", "if [ -z \"$name\" ]; then", "The loader copies batches in advance.",
         "return dvt_add(x, y);", "for name in sorted(names):", "grep -q \"$1\" \"$D/said\" || exit 1", "It waits for the GPU."]


class Reader(nn.Module):
    """Gives the logits of the languages after each character."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(CHARACTERS), 16)
        self.lstm = nn.LSTM(16, 40, num_layers=2, batch_first=True)
        self.head = nn.Linear(40, len(LANGUAGES))

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def tokens_of(line):
    return [CHARACTERS.index(c) for c in line[:LONGEST]]


def lines_of(language):
    """Returns the lines of one language in this repository, without blanks at both ends."""
    patterns = {"C": ["src/**/*.c", "tests/unit/*.c", "examples/*.c"], "Python": ["**/*.py"],
                "shell": ["**/*.sh", ".ci/run"], "English": ["docs/*.md", "*.md"]}
    out = set()
    for pattern in patterns[language]:
        for path in glob.glob(os.path.join(ROOT, pattern), recursive=True):
            if "/build/" in path or os.path.basename(path) in ("API.md", "PHRASES.md", "OPERATIONS.md"):
                continue
            with open(path, encoding="utf-8") as file:
                text = file.read()
            code = comment = False
            for line in text.split("\n"):
                code ^= line.startswith("```")
                if language == "English" and (code or line.startswith(("|", "```", "    ", "<", "#"))):
                    continue
                line = line.strip()
                comment = comment or line.startswith("/*")
                said, comment = comment, comment and not line.endswith("*/")
                if language == "C" and said or language != "English" and line.startswith(("#!", "# ", '"""')):
                    continue  # comments are English
                line = line.strip("-* ") if language == "English" else line
                if len(line) >= 8 and all(c in CHARACTERS for c in line):
                    out.add(line)
    return sorted(out)


def language():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    data, length, label = [], [], []
    for i, name in enumerate(LANGUAGES):
        lines = [tokens_of(line) for line in lines_of(name) if line not in LINES]
        print("%s: %d lines" % (name, len(lines)))
        data += [torch.tensor(line + [0] * (LONGEST - len(line))) for line in lines]
        length += [len(line) for line in lines]
        label += [i] * len(lines)
    data, length, label = torch.stack(data), torch.tensor(length), torch.tensor(label)
    share = 1 / torch.bincount(label).float()
    order = torch.randperm(len(data))
    held, order = order[:500], order[500:]
    net, steps = Reader(), 1600
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-2, total_steps=steps)
    for step in range(steps):
        rows = order[torch.multinomial(share[label[order]], 64)]
        counts = torch.arange(LONGEST)[None] < length[rows, None]
        logits = net(data[rows])[counts]
        loss = functional.cross_entropy(logits, label[rows, None].expand(-1, LONGEST)[counts])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print("step %d, loss %.3f" % (step, loss.item()), flush=True)
    save("language.safetensors", net, lambda net: {"test.%d" % i: net(torch.tensor([tokens_of(line)]))[0] for i, line in
                                                   enumerate(LINES)},
         {"characters": CHARACTERS, "languages": "\n".join(LANGUAGES), "lines": "\n".join(LINES)})
    with torch.no_grad():
        last = net(data[held])[torch.arange(len(held)), length[held] - 1]
        print("accuracy on 500 other lines %.3f" % (last.argmax(1) == label[held]).float().mean())
        for line in LINES:
            print(LANGUAGES[net(torch.tensor([tokens_of(line)]))[0, -1].argmax()], repr(line))


if __name__ == "__main__":
    if sys.argv[1:] == ["language"]:
        language()
    elif len(sys.argv) == 3 and sys.argv[1] == "classify":
        classify(sys.argv[2])
    else:
        sys.exit(__doc__)
