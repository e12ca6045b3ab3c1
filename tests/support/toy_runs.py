"""Small runs of the harness on toy images."""

import pytest

from benchmark.api import run
from benchmark.harness.evaluation import details
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.harness.store import Store

ONE_EPOCH = {"recipe.epochs": 1, "recipe.transform_steps": 5}


def run_below(root, methods, protocol, track, **options):
    """Records of a run on the CPU whose store and records lie below a folder."""
    return run(
        methods, protocol, track, store=root / "store", out=root / "out", compute=Compute("cpu"),
        **options,
    )  # fmt: skip


def toy(methods, store, out, protocol="open-class", **options):
    """Records of a run on the toy track."""
    options = {"compute": Compute("cpu"), **options}
    return run(methods, protocol, "toy", store=store, out=out, **options)


def run_toy(methods, root, protocol="open-class", **settings):
    """Records by method label, without the pictures of the details, which take longest.

    Args:
        methods: Labels; ``independent`` is always among the records.
        root: Folder of store and records.
        protocol: Id of a protocol.
        settings: As of ``--set``; pass ``**{"bct.weight": 0.0}``.
    """
    records = run_toy_seeds(methods, root / "out", root / "store", [0], protocol, settings=settings)
    return {record.method: record for record in records}


def run_toy_seeds(methods, out, store, seeds, protocol="extended-data", **options):
    """Records of some seeds, without pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(details, "draw", lambda *_: None)
        return toy(methods, store, out, protocol, seeds=seeds, **options)


def toy_and_plan(methods, folder, protocol, settings):
    """Records by method of a run without pictures, its plan, and the store with its stages."""
    plan = make_request(methods, protocol, "toy", settings=settings).plan()
    return run_toy(methods, folder, protocol, **settings), plan, Store(folder / "store")
