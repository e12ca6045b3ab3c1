"""Checks that every dataset must satisfy, whatever it is made of."""

from collections.abc import Callable

import numpy as np
import pytest

from benchmark.data import rendering
from benchmark.data.base import Dataset, Evaluation


def _check_evaluation(e: Evaluation, n_classes: int) -> None:
    n = len(e)
    assert e.images.shape[0] == n
    for column in (e.labels, e.ids, e.camera, e.media, e.group, e.template):
        assert column.shape == (n,)
        assert column.dtype == np.int64
    assert len(np.unique(e.ids)) == n
    assert e.labels.min() >= 0 and e.labels.max() < n_classes
    assert e.group.min() >= 0 and e.group.max() < len(e.group_names)
    assert len(set(e.group_names)) == len(e.group_names)
    for rows in (e.query, e.gallery):
        assert len(rows) and rows.min() >= 0 and rows.max() < n
        assert len(np.unique(rows)) == len(rows)
    # Every query has a match that is not itself.
    for q in e.query:
        same = e.gallery[e.labels[e.gallery] == e.labels[q]]
        assert (e.ids[same] != e.ids[q]).any()


def _check_templates(e: Evaluation) -> None:
    used = e.template >= 0
    for column in (e.labels, e.group):
        pairs = {(int(t), int(c)) for t, c in zip(e.template[used], column[used], strict=True)}
        assert len(pairs) == len({t for t, _ in pairs}), "a template has one subject, one group"
    subject = {int(t): int(c) for t, c in zip(e.template[used], e.labels[used], strict=True)}
    enrolled = np.concatenate(e.galleries)
    assert len(e.galleries) == 2 and all(len(g) for g in e.galleries)
    assert len(np.unique(enrolled)) == len(enrolled)
    assert not set(enrolled.tolist()) & set(e.probes.tolist())
    assert set(enrolled.tolist()) | set(e.probes.tolist()) == set(subject)
    subjects = [{subject[int(t)] for t in g} for g in e.galleries]
    assert [len(s) for s in subjects] == [len(g) for g in e.galleries]
    assert not subjects[0] & subjects[1]
    assert abs(len(subjects[0]) - len(subjects[1])) <= 1
    assert {subject[int(t)] for t in e.probes} <= subjects[0] | subjects[1]
    stored = np.isin(e.template, enrolled)
    searched = np.isin(e.template, e.probes)
    assert not set(e.media[stored].tolist()) & set(e.media[searched].tolist())


def _check(dataset: Dataset) -> None:
    n_classes = len(dataset.class_names)
    assert len(set(dataset.class_names)) == n_classes
    assert dataset.train.images.shape[0] == len(dataset.train)
    assert dataset.train.labels.dtype == np.int64
    everything = np.arange(len(dataset.train))
    assert dataset.train.images[everything].dtype == np.uint8
    assert "test" in dataset.evaluations
    for evaluation in dataset.evaluations.values():
        assert evaluation.images.shape[1:] == dataset.train.images.shape[1:]
        _check_evaluation(evaluation, n_classes)
        _check_templates(evaluation)


@pytest.fixture(scope="session")
def check() -> Callable[[Dataset], None]:
    """A function that checks every column of a dataset."""
    return _check


@pytest.fixture
def reds():
    """The mean red of each image, as a whole number."""

    def mean(images):
        return images[np.arange(images.shape[0])][:, 0].mean((1, 2)).round().astype(int).tolist()

    return mean


@pytest.fixture
def small():
    """Settings of a run that takes a second."""
    return {
        "recipe.epochs": 1, "recipe.precision": "32-true", "recipe.warmup": 0.0,
        "old.backbone": "convnet-4", "new.backbone": "convnet-4", "old.dim": 8, "new.dim": 8,
    }  # fmt: skip


@pytest.fixture(scope="session")
def letters():
    """Code points of a few characters, and their drawings in every face."""
    codes = [ord(c) for c in "aoO,'0xΩ"]
    return codes, rendering.draw(codes)[0]
