"""Augmented views that a plan caches: of the same pictures, for maps alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from support.toy_runs import toy_and_plan
from torch.nn import functional as F

from benchmark.config.recipes import Augment
from benchmark.data.serialization import read_dataset
from benchmark.harness.requests import make_request as request
from benchmark.harness.stages import _rows
from benchmark.harness.store import VECTORS
from benchmark.models.backbones import to_unit
from benchmark.models.module import load_module
from benchmark.training.closed_form import ridge
from benchmark.training.embedding import embed_view

HERE = torch.device("cpu")
CHANGES = Augment(rotate=20, shift=0.1, flip=True, contrast=0.3)
SMALL = {
    "data.classes": 12, "recipe.epochs": 1, "recipe.side_epochs": 1, "recipe.transform_steps": 6,
    "fct.width": 16,
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    settings = SMALL | {"recipe.transform_views": 3, "recipe.augment.flip": True}
    labels, settings["track.mirrored"] = ["linear", "bct", "fct:simclr"], True
    _, plan, store = toy_and_plan(labels, tmp_path_factory.mktemp("views"), "open-class", settings)
    return {result.label: result for result in plan.results}, store


def vectors(store, stage):
    return np.load(store.path(stage.name) / VECTORS)


def test_embeddings_of_evaluated_images_are_means_with_those_of_their_mirror_images(done):
    results, store = done
    stage = results["bct"].evaluation.inputs["vectors1"]
    dataset = read_dataset(store.path(stage.inputs["data"].name))
    images = dataset.evaluations[stage.work.part].images[np.arange(40)]
    model = load_module(store.path(stage.inputs["model"].name) / "model.safetensors").eval()
    with torch.inference_mode():
        batch = to_unit(torch.from_numpy(images))
        wanted = (model(batch) + model(batch.flip(3))).numpy() / 2
    np.testing.assert_allclose(vectors(store, stage)[:40], wanted, rtol=1e-4, atol=1e-4)
    # What maps are learned from is not.
    assert not results["linear"].updates[0].work.features[0].work.mirrored


def test_cached_views_are_of_the_same_pictures(done):
    """Each view of old, new and side-information as the model makes it of that picture."""
    results, store = done
    (update,) = results["fct:simclr"].updates
    stage = update.inputs["features0"]
    views = stage.work.views
    images = _rows(read_dataset(store.path(stage.inputs["data"].name)), [stage.work.part])
    roles = {"features0": "model0", "independent_features": "independent", "side": "side_model"}
    for role, of in roles.items():
        assert update.inputs[role].work.views == views
        model = load_module(store.path(update.inputs[of].name) / "model.safetensors")
        wanted = [
            embed_view(model, images.images, HERE, Augment(**views["augment"]), views["seed"], i)
            for i in range(3)
        ]
        got = vectors(store, update.inputs[role])
        np.testing.assert_allclose(got, np.concatenate(wanted), rtol=1e-4, atol=1e-5)
        assert not np.allclose(wanted[0], wanted[1], atol=1e-3)


def test_a_map_in_closed_form_is_fitted_on_all_views(done):
    results, store = done
    (update,) = results["linear"].updates
    old, new = (
        F.normalize(torch.from_numpy(vectors(store, update.inputs[role])))
        for role in ("features0", "independent_features")
    )
    weight, bias, _ = ridge(old, new, None)
    convert = load_module(store.path(update.name) / "convert.safetensors")
    wanted = F.normalize(old[:5] @ weight.float().T + bias.float())
    torch.testing.assert_close(convert(old[:5], None)[0], wanted, rtol=1e-3, atol=1e-4)


def test_models_that_are_trained_see_old_embeddings_of_the_pictures_as_they_are(done):
    """Their losses compare stored old vectors with new ones of other views, batch by batch."""
    results, _ = done
    (update,) = results["bct"].updates
    assert update.work.features[0].work.views is None


def test_models_are_the_same_with_any_views():
    """They are trained once for all of a sweep."""

    def names(views):
        settings = SMALL | {"recipe.transform_views": views}
        plan = request(["fct"], protocol="open-class", track="toy", settings=settings).plan()
        kinds = ("data", "train", "side")
        return {s.title: s.name for s in plan.stages if s.kind in kinds}

    assert names(1) == names(4) == names("epoch")


def test_epoch_needs_no_cached_views():
    plan = request(
        ["fct:simclr"], protocol="open-class", track="toy",
        settings=SMALL | {"recipe.transform_views": "epoch"},
    ).plan()  # fmt: skip
    (update,) = next(r for r in plan.results if r.label == "fct:simclr").updates
    assert update.work.features[0].work.views is None
    assert {"side", "side_model"} <= update.inputs.keys()
    assert update.work.recipe["transform_views"] == "epoch"
