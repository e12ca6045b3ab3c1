"""Small runs of the harness on toy images."""

import pytest

from benchmark.api import run
from benchmark.harness.evaluation import details
from benchmark.harness.execution import Compute
from benchmark.harness.requests import make_request
from benchmark.harness.store import Store


def run_toy(methods, root, protocol="open-class", **settings):
    """Records by method label, without the pictures of the details, which take longest.

    Args:
        methods: Labels; ``independent`` is always among the records.
        root: Folder of store and records.
        protocol: Id of a protocol.
        settings: As of ``--set``; pass ``**{"bct.weight": 0.0}``.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(details, "draw", lambda *_: None)
        records = run(
            methods, protocol, "toy", settings=settings, store=root / "store", out=root / "out",
            compute=Compute("cpu"),
        )  # fmt: skip
    return {record.method: record for record in records}


def toy(methods, store, out, protocol="open-class", **options):
    """Records of a run on the toy track."""
    options = {"compute": Compute("cpu"), **options}
    return run(methods, protocol, "toy", store=store, out=out, **options)


def toy_and_plan(methods, folder, protocol, settings):
    """Records by method of a run without pictures, its plan, and the store with its stages."""
    plan = make_request(methods, protocol, "toy", settings=settings).plan()
    return run_toy(methods, folder, protocol, **settings), plan, Store(folder / "store")


ONE_EPOCH = {"recipe.epochs": 1, "recipe.transform_steps": 5}


def run_toy_seeds(methods, out, store, seeds, **options):
    """Records of the unmodified track, of some seeds, without pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(details, "draw", lambda *_: None)
        return run(
            methods, "extended-data", "toy", seeds=seeds, store=store, out=out,
            compute=Compute("cpu"), **options,
        )  # fmt: skip
