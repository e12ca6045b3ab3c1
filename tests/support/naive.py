"""The definitions as plain loops, written apart from the code under test."""

import numpy as np


def score(a, b, l2):
    """Float64 score: exact on the small integers that tests use with l2."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if l2:
        return -float(((a - b) ** 2).sum())
    return float(a @ b / ((np.linalg.norm(a) or 1) * (np.linalg.norm(b) or 1)))


def one_query(scores, same, left_out):
    """First rank, AP, INP and number of matches of one query."""
    good = [s for s, m, o in zip(scores, same, left_out, strict=False) if m and not o]
    bad = [s for s, m, o in zip(scores, same, left_out, strict=False) if not m and not o]
    if not good:
        return 0, float("nan"), float("nan"), 0
    first = 1 + sum(s >= max(good) for s in bad)
    precisions = []
    for t in good:
        right = sum(s >= t for s in good)
        precisions.append(right / (right + sum(s >= t for s in bad)))
    last = len(good) + sum(s >= min(good) for s in bad)
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
