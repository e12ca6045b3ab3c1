"""Results of published scripts, written anew in float64, and this project's distance from them.

``python docs/generate.py docs/methods.md`` prints :func:`comparisons` there; tests compare with the
same functions on more inputs.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
ROWS = "script|what it computes|here|agrees"


def credible(features: Any, labels: Any, keep: float) -> NDArray[np.bool_]:
    """The items ``[n]`` that MixBCT's tools/denoising/denoise_credible.py (7869281) keeps."""
    from sklearn.preprocessing import normalize

    scaled = normalize(normalize(np.asarray(features, np.float64)), axis=0)
    kept = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        distance = np.linalg.norm(scaled[own] - scaled[own].mean(axis=0), axis=1)
        kept[own[np.argsort(distance)[: math.ceil(keep * len(own))]]] = True
    return kept


def rbt_block(vectors: Any, weights: Mapping[str, Any], paths: int) -> Values:
    """The output ``[n, d]`` of RBTBlock in LCE's models/trans.py (bb087e5), in evaluation mode.

    ``weights`` has ``<path>.<layer>.<name>``: each path is Linear, BatchNorm, PReLU three times.
    """
    get = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    vectors = np.asarray(vectors, np.float64)
    out = vectors
    for path in range(paths):
        x = vectors
        for layer in (0, 3, 6):
            linear, norm, prelu = (f"{path}.{layer + i}." for i in range(3))
            x = x @ get[linear + "weight"].T
            x = (x - get[norm + "running_mean"]) / np.sqrt(get[norm + "running_var"] + 2e-5)
            x = x * get[norm + "weight"] + get[norm + "bias"]
            x = np.maximum(x, 0) + get[prelu + "weight"] * np.minimum(x, 0)
        out = out + x
    return out


def lce_borders(features: Any, labels: Any) -> tuple[Values, Values]:
    """Centres ``[c, d]`` and smallest cosines ``[c]`` of LCE's main.py, save_lcefeat."""
    features = unit(features)
    centres, lowest = [], []
    for label in np.unique(labels):
        own = features[labels == label]
        centres.append(unit(own.mean(axis=0)))
        lowest.append(min(own @ centres[-1]))
    return np.array(centres), np.array(lowest)


def lce_terms(
    converted: Any, labels: Any, borders: tuple[Values, Values], mapped: Any, rows: Any
) -> float:
    """Weighted alignment and boundary terms of LCE's main.py, train, in the forward direction.

    Vectors ``converted``, ``[n, d]``, with labels ``[n]``; the map's output for the old centres,
    ``[c, d]``, and the classifier's rows, ``[c, d]``. All are compared as unit vectors, but what
    the map makes of the centres has its own length.
    """
    centres, lowest = borders
    cosine = (unit(converted) * centres[labels]).sum(axis=1)
    bound = np.maximum(lowest[labels] - cosine, 0).mean()
    align = ((mapped - unit(rows)) ** 2).mean()
    return float(100 * align + bound)


def nearest_far(genuine: Any, impostor: Any, target: float) -> tuple[float, float]:
    """FAR and TAR that MixBCT's tools/ijbc_eval/ijbc_eval.py (7869281) prints for a target."""
    from sklearn.metrics import roc_curve

    truth = np.concatenate([np.ones(len(genuine)), np.zeros(len(impostor))])
    far, tar, _ = roc_curve(truth, np.concatenate([genuine, impostor]))
    far, tar = np.flipud(far), np.flipud(tar)
    place = np.argmin(abs(far - target))
    return float(far[place]), float(tar[place])


def all_pairs(similarity: Any, mates: Any, target: float) -> tuple[float, float]:
    """Recall and threshold that insightface's ijb_1n.py (1b8d928) prints for a target.

    Scores ``[n, m]`` of probes and enrolled templates; the one mate of each probe, ``[n]``.
    """
    n = len(similarity)
    mate = np.zeros(similarity.shape, bool)
    mate[np.arange(n), mates] = True
    negative = np.sort(similarity[~mate])[::-1]
    threshold = negative[math.ceil(n * target) - 1]
    return float(np.sum(similarity[mate] > threshold) / n), float(threshold)


def unit(vectors: Any) -> Values:
    """Directions of the rows."""
    vectors = np.asarray(vectors, np.float64)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def comparisons() -> Iterator[tuple[str, str, str, str]]:
    """A row of ``ROWS`` for each script, on vectors drawn from one seed."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(40), 50)
    centres = rng.standard_normal((40, 64))
    old = (centres[labels] + 1.5 * rng.standard_normal((2000, 64))) * rng.gamma(9, size=(2000, 1))
    old = old.astype(np.float32)
    yield _denoising(old, labels)
    yield _block(old)
    yield _terms(old, labels)
    yield _nearest(rng)
    yield _all_pairs(old, labels)


def _denoising(old: Any, labels: Any) -> tuple[str, str, str, str]:
    import torch

    from benchmark.training.credibility import near_own_class

    wanted = credible(old, labels, 0.9)
    rows = torch.from_numpy(old), torch.from_numpy(labels), 0.1
    kept, text = (near_own_class(*rows, directions).numpy() for directions in (True, False))
    share = np.mean(~wanted[~text])
    return (
        "MixBCT, `denoise_credible.py`", f"drops {(~wanted).sum()} of {len(old)} old features",
        f"{(kept != wanted).sum()} differ; `mixbct:text` drops {share:.0%} of the same",
        _verdict(bool((kept == wanted).all())),
    )  # fmt: skip


def _block(old: Any) -> tuple[str, str, str, str]:
    import torch

    from benchmark.models.transformation import ParallelBottlenecks

    torch.manual_seed(0)
    block = ParallelBottlenecks(64, 64, 4, 16, normalise=False)
    vectors = torch.from_numpy(old)
    block(vectors, None)
    with torch.inference_mode():
        got = block.eval()(vectors, None)[0].numpy()
    wanted = rbt_block(old, block.paths.state_dict(), 4)
    size = sum(p.numel() for p in block.parameters())
    return (
        "LCE, `models/trans.py`", "four paths of 64-16-16-64, 10,368 parameters",
        f"{size:,} parameters, equal output",
        _verdict(size == 10368 and np.allclose(got, wanted, rtol=1e-4, atol=1e-4)),
    )  # fmt: skip


def _terms(old: Any, labels: Any) -> tuple[str, str, str, str]:
    import torch
    from torch import nn

    from benchmark.training.prototypes import CentreAlignment, ClassBorders

    rng = np.random.default_rng(1)
    new, rows, moved = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((2000, 64), (40, 64), (64, 64))
    )
    new += 2 * rows[labels]
    converted, y = torch.from_numpy(new + old / 9), torch.from_numpy(labels)
    borders = ClassBorders(torch.from_numpy(new), y, 40)
    unit_old = torch.from_numpy(unit(old)).float()
    alignment = CentreAlignment(unit_old, y, torch.from_numpy(rows), unit_output=False)

    class Map(nn.Module):
        def forward(self, x: Any, side: None) -> tuple[Any, None]:
            return x @ torch.from_numpy(moved), side

    got = 100 * alignment(Map()).item() + borders(converted, y).item()
    centres = lce_borders(old, labels)[0]
    wanted = lce_terms(converted, labels, lce_borders(new, labels), centres @ moved, rows)
    return (
        "LCE, `main.py`, `lce-published` here",
        f"100 times the alignment and the border: {wanted:.4f}", f"{got:.4f}",
        _verdict(math.isclose(got, wanted, rel_tol=1e-4)),
    )  # fmt: skip


def _nearest(rng: np.random.Generator) -> tuple[str, str, str, str]:
    from benchmark.metrics.verification import roc, tar_at_nearest_far

    # Two digits, as scores of a small set are: equal steps are common.
    good, bad = (np.round(rng.normal(mean, 0.15, n), 2) for mean, n in ((0.6, 300), (0.2, 700)))
    targets = [k / 100 for k in range(1, 51)]
    wanted = [nearest_far(good, bad, target)[1] for target in targets]
    got = [point.tar for point in tar_at_nearest_far(good, bad, targets)]
    whole = roc(good, bad)
    places = [np.flatnonzero(abs(whole.far - t) == abs(whole.far - t).min())[-1] for t in targets]
    other = sum(a != b for a, b in zip(whole.tar[places], wanted, strict=True))
    differ = sum(a != b for a, b in zip(got, wanted, strict=True))
    return (
        "MixBCT, `ijbc_eval.py`, and others", f"TAR at the FAR nearest to {len(targets)} targets",
        f"{differ} differ; on all points of the ROC {other} would", _verdict(differ == 0),
    )  # fmt: skip


def _all_pairs(old: Any, labels: Any) -> tuple[str, str, str, str]:
    from benchmark.metrics.identification import all_pairs_tpir_at_fpir

    probes, subjects = old[labels < 30][1::2], labels[labels < 30][1::2]
    enrolled = old[::50]
    parts = [(enrolled[:20], labels[::50][:20]), (enrolled[20:], labels[::50][20:])]
    targets = [0.001, 0.01, 0.1, 0.5]
    got = [point.tar for point in all_pairs_tpir_at_fpir(probes, subjects, parts, targets)]
    similarity = unit(probes) @ unit(enrolled).T
    wanted = [all_pairs(similarity, subjects, target)[0] for target in targets]
    return (
        "insightface, `ijb_1n.py`", "recall at FPIR " + ", ".join(map(str, targets)),
        ", ".join(f"{value:.1%}" for value in got), _verdict(got == wanted),
    )  # fmt: skip


def _verdict(agrees: bool) -> str:
    return "yes" if agrees else "no"
