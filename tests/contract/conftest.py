"""A small conversion, fitted on plain arrays, and one made by hand."""

import numpy as np
import pytest
import torch
from support.training import data, one_thread, spec, trainer  # noqa: F401

import benchmark
from benchmark.config.recipes import Recipe
from benchmark.contract.conversion import Conversion, Dims
from benchmark.models.module import Portable
from benchmark.models.parts import Affine, KeepSide

QUICK = Recipe(epochs=1, transform_steps=8, transform_batch=32)
N, OLD, NEW, SIDE = 120, 6, 5, 3


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    old = rng.standard_normal((N, OLD)).astype(np.float32)
    return {
        "old": old,
        "new": (old @ rng.standard_normal((OLD, NEW))).astype(np.float32),
        "side": rng.standard_normal((N, SIDE)).astype(np.float32),
        "labels": rng.integers(0, 4, N),
        "weight": rng.standard_normal((4, NEW)).astype(np.float32),
    }


def _fct(**params):
    return benchmark.get_method("fct", width=16, **params)


def _fitted(arrays, *, side=False, **options):
    beside = arrays["side"] if side else None
    return _fct().fit(
        arrays["old"], arrays["new"], side=beside, recipe=QUICK, device="cpu", **options
    )


@pytest.fixture(scope="module")
def fct():
    """Parameters -> FCT with a narrow map."""
    return _fct


@pytest.fixture(scope="module")
def fitted():
    """Arrays and options of ``fit`` -> the conversion."""
    return _fitted


@pytest.fixture(scope="module")
def plain(arrays):
    return _fitted(arrays)


@pytest.fixture(scope="module")
def sided(arrays):
    return _fitted(arrays, side=True)


class FirstNumber(Portable):
    """A priority: the first number of a vector, to one digit, so that there are ties."""

    def forward(self, vectors, side):
        return (vectors[:, 0] * 2).round()


@pytest.fixture(scope="module")
def with_priority():
    """A dimension -> a conversion that doubles vectors of it and orders by the first number."""

    def made(d_old=OLD):
        return Conversion(
            "made-up", {}, "l2", Dims(old=d_old, new=d_old), False,
            {"convert": KeepSide(Affine.of(torch.eye(d_old) * 2)), "priority": FirstNumber()},
        )  # fmt: skip

    return made
