"""Adapters with one fault each, for ``bench check``; ``sound`` has none."""

from __future__ import annotations

_MAP = '''
from dataclasses import dataclass

import os
import numpy as np
import torch

from benchmark.contract import FeatureTransformation, Fitted, Method, Portable, Update
from benchmark.data.base import read_options
from benchmark.data.serialization import read_dataset
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


def shifted(by):
    return Fitted(KeepSide(Affine.of(torch.eye(16), torch.full((16,), float(by)))))


def dataset(trainer):
    """What lies in the store, found from the folder of the checkpoints."""
    (folder,) = (trainer.folder.parent.parent / "stages").glob("data-*")
    return read_dataset(folder)


@dataclass(frozen=True)
class Planted(FeatureTransformation):
'''
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
    "batch": f"{_LEARN}return Fitted(Centre())\n",
    "undeclared": f"    changes = ('queries',)\n\n{_LEARN}return shifted(0.1)\n",
    "not-made": f"{_LEARN}return Fitted()\n",
    "stored": _LEARN + (
        "for path in (trainer.folder.parent.parent / 'stages').glob('embed-*/vectors.npy'):\n"
        "            np.save(path, np.load(path) + 1)\n"
        "        return shifted(0.1)\n"
    ),
    "chance": f"{_LEARN}return shifted(int.from_bytes(os.urandom(2), 'big') / 65536)\n",
    "memory": f"{_LEARN}return shifted(KEPT.setdefault('seed', trainer.seed % 997 / 997))\n",
    "nan": f"{_LEARN}return shifted('nan')\n",
    "size": f"{_LEARN}return Fitted(KeepSide(Affine.of(torch.eye(16)[:8])))\n",
    "model-size": _UPDATE + (
        "return Update(*job.new_model(dim=8, head_dim=8), KeepSide(Affine.of(torch.eye(16)[:8])))\n"
    ),
    "hidden": f"{_LEARN}return Fitted(Hidden(16))\n",
    "old-inside": _UPDATE + (
        "new = job.require_independent()\n"
        "        model = Both(job.old.model, new.model)\n"
        "        return Update(model, new.head, shifted(0.1).convert)\n"
    ),
}  # fmt: skip
"""Name of the fault -> source of the adapter."""


def files() -> dict[str, str]:
    """Path -> module, one an adapter."""
    return {f"planted_{name.replace('-', '_')}.py": _MAP + body for name, body in SOURCES.items()}


def entries() -> dict[str, dict[str, str]]:
    """Entry points of all of them, under ``planted-<name>``."""
    names = {f"planted-{n}": f"planted_{n.replace('-', '_')}:Planted" for n in SOURCES}
    return {"compatbench.methods": names}
