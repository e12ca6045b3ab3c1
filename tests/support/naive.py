"""The definitions as plain loops, written apart from the code under test."""

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
