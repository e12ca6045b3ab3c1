"""The definitions as plain loops, written apart from the code under test."""

import math

import numpy as np


def score(a, b, l2):
    """Float64 score: exact on the small integers that tests use with l2."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if l2:
        return -float(((a - b) ** 2).sum())
    return float(a @ b / ((np.linalg.norm(a) or 1) * (np.linalg.norm(b) or 1)))


def table(q, g, l2):
    """Float64 scores of all pairs, as :func:`score` gives them where these are exact."""
    q, g = (np.asarray(x, np.float64) for x in (q, g))
    if l2:
        return -((q[:, None] - g) ** 2).sum(2)
    left, right = (np.linalg.norm(x, axis=1) for x in (q, g))
    lengths = np.where(left == 0, 1, left)[:, None] * np.where(right == 0, 1, right)
    return (q[:, None] * g).sum(2) / lengths


def one_query(scores, same, left_out):
    """First rank, AP, INP and number of matches of one query."""
    scores, same = np.asarray(scores, np.float64), np.asarray(same, bool)
    counts = ~np.asarray(left_out, bool)
    good, bad = scores[same & counts], scores[~same & counts]
    if not len(good):
        return 0, float("nan"), float("nan"), 0
    first = 1 + int((bad >= good.max()).sum())
    precisions = []
    for t in good:
        right = int((good >= t).sum())
        precisions.append(right / (right + int((bad >= t).sum())))
    last = len(good) + int((bad >= good.min()).sum())
    return first, sum(precisions) / len(good), len(good) / last, len(good)


def left_out(i, ql, gl, ids=None, cameras=None, junk=None):
    out = []
    for j in range(len(gl)):
        drop = junk is not None and bool(junk[j])
        drop = drop or (ids is not None and ids[0][i] == ids[1][j])
        same_camera = cameras is not None and cameras[0][i] == cameras[1][j]
        out.append(drop or (same_camera and ql[i] == gl[j]))
    return out


def ranking(table, ql, gl, ids=None, cameras=None, junk=None):
    rows = [
        one_query(table[i], [ql[i] == g for g in gl], left_out(i, ql, gl, ids, cameras, junk))
        for i in range(len(ql))
    ]
    return [np.array(column) for column in zip(*rows, strict=False)]


def clustered_mean(sums, counts):
    """Mean of groups' values, and its deviation; a residual counts by the share of the others."""
    total = sum(counts)
    mean = sum(sums) / total
    squares = sum((s - mean * c) ** 2 / (1 - c / total) for s, c in zip(sums, counts, strict=True))
    return mean, math.sqrt(squares) / total


def clustered_freedom(counts, alike):
    """Satterthwaite's degrees of freedom, term by term, of residuals of groups' sums."""
    n, total = range(len(counts)), sum(counts)
    share = [c / total for c in counts]
    variance = [c * (1 - alike) + c * c * alike for c in counts]

    def covariance(g, h):
        of_sums = sum(((k == g) - share[g]) * ((k == h) - share[h]) * variance[k] for k in n)
        return of_sums / math.sqrt((1 - share[g]) * (1 - share[h]))

    squares = sum(covariance(g, h) ** 2 for g in n for h in n)
    return max(1.0, sum(covariance(g, g) for g in n) ** 2 / squares)


def intraclass(groups):
    """The intraclass correlation by the analysis of variance, between 0 and 1."""
    values = [v for group in groups for v in group]
    n, k = len(values), len(groups)
    if k in (1, n):
        return 1.0
    mean = sum(values) / n
    means = [sum(group) / len(group) for group in groups]
    inside = sum((v - m) ** 2 for group, m in zip(groups, means, strict=True) for v in group) / (
        n - k
    )
    among = sum(len(g) * (m - mean) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    usual = (n - sum(len(g) ** 2 for g in groups) / n) / (k - 1)
    whole = among + (usual - 1) * inside
    return min(1.0, max(0.0, (among - inside) / whole)) if whole > 1e-12 else 1.0
