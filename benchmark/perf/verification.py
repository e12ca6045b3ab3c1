"""1:1 verification at IJB-C's shape, and building its templates."""

from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from benchmark.metrics import verification
from benchmark.metrics.templates import templates
from benchmark.perf import measure
from benchmark.ranking import pair_scores

_PAIRS, _IMAGES = 15_660_000, 469_375
_TARGETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
_PEER, _OURS = "scikit-learn roc_curve", "ROC and EER"


def rows(
    queries: int = 19_593, gallery: int = 3_531, dim: int = 512, classes: int = 3_531
) -> list[dict[str, Any]]:
    """Time scores of template pairs of probes and gallery, TAR at six FARs, ROC, templates."""
    rng = np.random.default_rng(0)
    n, n_pairs = queries + gallery, min(_PAIRS, queries * gallery)
    centre = rng.standard_normal((classes, dim), dtype=np.float32)
    x, subject = measure.clusters(n, centre, 2.0, rng)
    left = rng.integers(0, gallery, n_pairs, dtype=np.int32)
    right = rng.integers(gallery, n, n_pairs, dtype=np.int32)
    same = subject[left] == subject[right]
    few = slice(0, min(1000, n_pairs))
    pair_scores.listed(x[:50], x[:50], left[few] % 50, right[few] % 50)
    scores = pair_scores.listed(x, x, left, right)
    genuine, impostor = scores[same], scores[~same]

    def whole() -> object:
        scores = pair_scores.listed(x, x, left, right)
        good, bad = scores[same], scores[~same]
        targets = [target for target in _TARGETS if target >= 1 / len(bad)]
        return verification.tar_at_far(good, bad, targets)

    calls = {
        "pairs, and TAR at six FARs": whole,
        _OURS: lambda: verification.equal_error_rate(genuine, impostor),
    }
    size = f"{n} templates x {dim}, {n_pairs} pairs"
    timings = measure.together(calls, 2)
    out = measure.rows(timings, size)
    both = np.concatenate([genuine, impostor])
    truth = np.repeat([True, False], [len(genuine), len(impostor)])
    timings[_PEER] = measure.once(lambda: roc_curve(truth, both))
    out.append(measure.rows(timings, size, _OURS)[-1])
    return [*out, *_templates(n, dim, rng)]


def _templates(n: int, dim: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    images = _IMAGES * n // 23_124
    vectors = rng.standard_normal((images, dim), dtype=np.float32)
    template = np.sort(rng.integers(0, n, images))
    media = rng.integers(0, 6, images)
    weights = rng.random(images)
    templates(vectors[:100], template[:100], media[:100], weights=weights[:100])
    timing = measure.once(lambda: templates(vectors, template, media, weights=weights))
    return measure.rows({"templates": timing}, f"{images} images x {dim}")
