"""Adapters with one fault each, for ``bench check``; ``sound`` has none."""

from __future__ import annotations

_MAP = '''
import base64
import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmark.contract import CompatibleTraining, FeatureTransformation, Fitted, Portable, Update
from benchmark.data.base import read_options
from benchmark.data.serialization import read_dataset
from benchmark.models.heads import Head
from benchmark.models.parts import Affine, KeepSide

KEPT = {}


class Centre(Portable):
    def forward(self, vectors, side):
        return vectors - vectors.mean(dim=0), side


class Hidden(Portable):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("weight", torch.eye(dim))

    def forward(self, vectors, side):
        return vectors @ self.weight, side


class Both(Portable):
    def __init__(self, old, new):
        super().__init__()
        self.old, self.new = old, new

    def forward(self, images):
        return self.new(images) + 0.1 * self.old(images)


class Late(Portable):
    def forward(self, vectors, side):
        return vectors + toy().images.mean().item() / 255, side


class Noise(Portable):
    def forward(self, vectors, side):
        return vectors + 0.01 * torch.randn_like(vectors), side


class Counting(Portable):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, vectors, side):
        self.calls += 1
        return vectors + 0.01 * self.calls, side


class Large(Portable):
    def forward(self, vectors, side):
        many = vectors.any(dim=1).sum() > 100
        return vectors - vectors.mean(dim=0) if many else vectors, side


class SideCentre(Portable):
    def forward(self, vectors, side):
        return vectors, side - side.mean(dim=0)


class Few(Portable):
    def forward(self, vectors, side):
        return vectors[:-1], side


class Endless(Portable):
    def forward(self, vectors, side):
        return torch.log(torch.relu(vectors[:, 0]))


class Broken(Portable):
    def forward(self, vectors, side):
        return vectors @ vectors, side


class Coded(Portable):
    def __init__(self, text):
        super().__init__()
        numbers = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float32)
        self.numbers = numbers.reshape(16, 16)

    def forward(self, vectors, side):
        return vectors @ self.numbers, side


class Elementwise(Portable):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(dim))

    def forward(self, vectors, side):
        return (vectors[:, :, None] * self.weight).sum(dim=1), side


class Outside(Portable):
    def forward(self, vectors, side):
        return vectors + KEPT.get("shift", 0.0), side


def toy():
    return read_options("toy").load(None).evaluations["test"]


@functools.cache
def cached_images():
    return toy().images


def shifted(by):
    return Fitted(KeepSide(Affine.of(torch.eye(16), torch.full((16,), float(by)))))


def dataset(trainer):
    """Content of the store, found from the folder of the checkpoints."""
    (folder,) = (trainer.folder.parent.parent / "stages").glob("data-*")
    return read_dataset(folder)


'''
_CLASS = "\n\n@dataclass(frozen=True)\nclass Planted(FeatureTransformation):\n"
_TRAINED = """

@dataclass(frozen=True)
class Planted(CompatibleTraining[nn.Module]):
    def loss(self, batch, head, state):
        return head(batch.new, batch.labels)
"""
_LEARN = "    def learn(self, pairs, trainer):\n        "
_UPDATE = (
    "    own_model = True\n\n    def learn(self, *_): ...\n\n    def update(self, job):\n        "
)

SOURCES = {
    "sound": f"{_LEARN}return shifted(0.1)\n",
    "evaluation-items": _LEARN + (
        "images = read_options('toy').load(None).evaluations['test'].images\n"
        "        return shifted(images.mean() / 255)\n"
    ),
    "evaluation-labels": _LEARN + (
        "labels = dataset(trainer).evaluations['test'].labels\n"
        "        return shifted(labels[:20].mean() / 100)\n"
    ),
    "pixel-statistics": f"{_LEARN}return shifted(toy().images.std() / 255)\n",
    "cached-items": f"{_LEARN}return shifted(cached_images().mean() / 255)\n",
    "at-conversion": f"{_LEARN}return Fitted(Late())\n",
    "stored-embeddings": _LEARN + (
        "paths = (trainer.folder.parent.parent / 'stages').glob('embed-*/vectors.npy')\n"
        "        found = [v for v in map(np.load, sorted(paths)) if len(v) == len(toy())]\n"
        "        return shifted(sum(v.std() for v in found))\n"
    ),
    "label-counts": _LEARN + (
        "labels = dataset(trainer).evaluations['test'].labels\n"
        "        return shifted(len(np.unique(labels)) / 100)\n"
    ),
    "batch": f"{_LEARN}return Fitted(Centre())\n",
    "large-batch": f"{_LEARN}return Fitted(Large())\n",
    "side-batch": (
        "    @property\n    def needs(self):\n        return 'independent', 'side:simclr'\n\n"
        f"{_LEARN}return Fitted(SideCentre())\n"
    ),
    "undeclared": f"    changes = ('queries',)\n\n{_LEARN}return shifted(0.1)\n",
    "not-made": f"{_LEARN}return Fitted()\n",
    "more-than-cut": (
        "    changes = ('training', 'dimension')\n\n"
        "    def finish(self, job, encoder, head, state):\n"
        "        view = Affine.of(-torch.eye(16), torch.ones(16))\n"
        "        return Update(encoder, head, query_view=view)\n"
    ),
    "stored-images": _LEARN + (
        "for path in (trainer.folder.parent.parent / 'stages').glob('data-*/test.images.npy'):\n"
        "            np.save(path, np.load(path) // 2)\n"
        "        return shifted(0.1)\n"
    ),
    "stored": _LEARN + (
        "for path in (trainer.folder.parent.parent / 'stages').glob('embed-*/vectors.npy'):\n"
        "            np.save(path, np.load(path) + 1)\n"
        "        return shifted(0.1)\n"
    ),
    "chance": f"{_LEARN}return shifted(int.from_bytes(os.urandom(2), 'big') / 65536)\n",
    "memory": f"{_LEARN}return shifted(KEPT.setdefault('seed', trainer.seed % 997 / 997))\n",
    "memory-of-pairs": f"{_LEARN}return shifted(KEPT.setdefault('x', pairs.new[0, 0].item()))\n",
    "hash": f"{_LEARN}return shifted(hash('a word') % 997 / 997)\n",
    "noise": f"{_LEARN}return Fitted(Noise())\n",
    "calls": f"{_LEARN}return Fitted(Counting())\n",
    "global-draws": f"{_LEARN}return shifted(torch.rand(()).item())\n",
    "temporary": _LEARN + (
        "path = Path(tempfile.gettempdir(), 'planted-shift.npy')\n"
        "        if not path.exists():\n"
        "            np.save(path, trainer.seed % 997 / 997)\n"
        "        return shifted(np.load(path).item())\n"
    ),
    "outside": f"{_LEARN}KEPT['shift'] = 0.5\n        return Fitted(Outside())\n",
    "nan": f"{_LEARN}return shifted('nan')\n",
    "zeros": f"{_LEARN}return Fitted(KeepSide(Affine.of(torch.zeros(16, 16))))\n",
    "nan-loss": (
        "    def loss(self, batch, head, state):\n"
        "        return head(batch.new, batch.labels) * float('nan')\n"
    ),
    "loss-of-rows": (
        "    def loss(self, batch, head, state):\n        return batch.new.square().sum(dim=1)\n"
    ),
    "loss-of-python": "    def loss(self, batch, head, state):\n        return 1.0\n",
    "constant-loss": (
        "    def loss(self, batch, head, state):\n        return torch.tensor(1.0)\n"
    ),
    "raises": (
        "    def loss(self, batch, head, state):\n        return batch.new @ batch.new[:3, :3]\n"
    ),
    "variant": f"    variants = {{'x': {{'wieght': 2}}}}\n\n{_LEARN}return shifted(0.1)\n",
    "fidelity": f"    fidelity = 'mine'\n\n{_LEARN}return shifted(0.1)\n",
    "unlearned": "    scale: float = 1.0\n",
    "plan": f"    def refuses(self, step):\n        return step.gone\n\n{_LEARN}...\n",
    "property": (
        f"    @property\n    def needs(self):\n        return self.gone\n\n{_LEARN}...\n"
    ),
    "exits": f"{_LEARN}raise SystemExit(0)\n",
    "no-map": f"{_LEARN}return None\n",
    "torch-map": f"{_LEARN}return Fitted(nn.Linear(16, 16))\n",
    "torch-map-inside": f"{_LEARN}return Fitted(KeepSide(nn.Linear(16, 16)))\n",
    "tensor-inside": f"{_LEARN}return Fitted(KeepSide(torch.eye(16)))\n",
    "raises-later": f"{_LEARN}return Fitted(Broken())\n",
    "endless": f"{_LEARN}return Fitted(shifted(0.1).convert, priority=Endless())\n",
    "rows": f"{_LEARN}return Fitted(Few())\n",
    "state": "    def prepare(self, job):\n        return {}\n",
    "no-update": "    def finish(self, job, encoder, head, state):\n        return None\n",
    "head-size": (
        "    def finish(self, job, encoder, head, state):\n"
        "        return Update(encoder, Head('softmax', 5, [0, 1, 2]))\n"
    ),
    "size": f"{_LEARN}return Fitted(KeepSide(Affine.of(torch.eye(16)[:8])))\n",
    "model-size": _UPDATE + (
        "return Update(*job.new_model(dim=8, head_dim=8), KeepSide(Affine.of(torch.eye(16)[:8])))\n"
    ),
    "hidden": f"{_LEARN}return Fitted(Hidden(16))\n",
    "in-a-text": _LEARN + (
        "numbers = torch.eye(16).numpy().tobytes()\n"
        "        return Fitted(Coded(base64.b64encode(numbers).decode()))\n"
    ),
    "elementwise": f"{_LEARN}return Fitted(Elementwise(16))\n",
    "old-altered-inside": (
        "    def finish(self, job, encoder, head, state):\n"
        "        for weights in job.old.model.parameters():\n"
        "            weights.data.mul_(1.001)\n"
        "        return Update(Both(job.old.model, encoder), head)\n"
    ),
    "not-inside": "    runs_old_model = True\n",
    "old-inside": _UPDATE + (
        "new = job.require_independent()\n"
        "        model = Both(job.old.model, new.model)\n"
        "        return Update(model, new.head, shifted(0.1).convert)\n"
    ),
}  # fmt: skip
"""Name of the fault -> source of the adapter."""


_OF_TRAININGS = (
    "more-than-cut", "nan-loss", "head-size", "old-altered-inside", "not-inside", "loss-of-rows",
    "loss-of-python", "constant-loss", "raises", "state", "no-update",
)  # fmt: skip


def files() -> dict[str, str]:
    """Path -> module, one an adapter."""

    def source(name: str) -> str:
        return _MAP + (_TRAINED if name in _OF_TRAININGS else _CLASS) + SOURCES[name]

    files = {f"planted_{name.replace('-', '_')}.py": source(name) for name in SOURCES}
    plain = files["planted_sound.py"].replace("@dataclass(frozen=True)\n", "")
    return files | {"planted_plain_class.py": plain}


def entries() -> dict[str, dict[str, str]]:
    """Entry points of all of them, under ``planted-<name>``."""
    every = (*SOURCES, "plain-class")
    names = {f"planted-{n}": f"planted_{n.replace('-', '_')}:Planted" for n in every}
    return {"compatbench.methods": names}
