"""The tables of studies: of records made here, and of none."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from support.stored import stored

sys.path.append(str(Path(__file__).parents[1] / "docs"))

import core_tracks
import lengths_study
import tuning_study

N = 120
CLASSES = np.arange(N) // 8
TUNING = {"data.tuning": True}


def put(folder, method, cross, config=None, changed=None, score=None, **fields):
    """Write a record whose cross-test is so high, of the queries kept; of all it is ``score``."""
    values = {
        (case, "cmc_at_1"): (np.arange(N) < round(share * N)).astype(float)
        for case, share in (("old/old", 0.25), ("new/old", cross), ("new/new", 0.75))
    }
    scores = {case: {metric: float(v.mean())} for (case, metric), v in values.items()}
    if score is not None:
        scores["new/old"] = {"cmc_at_1": score}
    return stored(
        folder, method, values, CLASSES, changed=changed or {}, config=config or {}, scores=scores,
        intervals={},
        bounds={"lower": scores["old/old"], "upper": scores["new/new"]}, **fields,
    )  # fmt: skip


def test_weights_beside_the_default(tmp_path) -> None:
    for folder, weight, share in (("a", 10.0, 0.5), ("b", 3.3, 0.25), ("c", 30.0, 0.75)):
        changed = TUNING if weight == 10.0 else {**TUNING, "l2.weight": weight}
        put(tmp_path / folder, "l2", share, {"weight": weight}, changed)
        put(tmp_path / folder, "independent", 0.0, None, changed)
        lam = {"a": None, "b": 0.1, "c": 0.9}[folder]
        changed = TUNING if lam is None else {**TUNING, "fastfill.lam": lam}
        put(tmp_path / folder, "fastfill", 0.6, {"lam": lam}, changed)
    text = "\n".join(tuning_study.lines(tmp_path))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [(r[0], r[2]) for r in rows] == [
        ("| `fastfill`", "0.1"), ("| `fastfill`", "of sizes"), ("| `fastfill`", "0.9"),
        ("| `l2`", "3.3"), ("| `l2`", "10"), ("| `l2`", "30"),
    ]  # fmt: skip
    assert [r[4].partition(" ")[0] for r in rows[3:]] == ["-25.0", "default", "+25.0"]
    assert "defaults: `fastfill` > `l2`. Each at its best weight: `l2` > `fastfill`." in text
    assert "Tau-b of the two: -1.00." in text


def test_differences_of_weights_are_those_of_the_scores_beside_them(tmp_path) -> None:
    """Details keep a part of many queries, whose difference is another one."""
    for folder, weight, kept, score in (("a", 10.0, 0.5, 0.5), ("b", 3.3, 0.25, 0.35)):
        changed = TUNING if weight == 10.0 else {**TUNING, "l2.weight": weight}
        put(tmp_path / folder, "l2", kept, {"weight": weight}, changed, score)
    text = "\n".join(tuning_study.lines(tmp_path))
    (row,) = (line.split(" | ") for line in text.splitlines() if "| 3.3 |" in line)
    difference, interval = row[4].split(" ", 1)
    low, high = (float(end) for end in interval.strip("()").split(" to "))
    assert difference == "-15.0" and low < -15.0 < high


@pytest.mark.parametrize("lines", [tuning_study.lines, lengths_study.lines])
def test_no_record_yet(lines, tmp_path) -> None:
    assert list(lines(tmp_path)) == ["No record yet."]


def test_lengths_beside_the_board(tmp_path) -> None:
    board, study = tmp_path / "results", tmp_path / "results" / "studies" / "lengths"
    for folder, changed in ((board, {}), (study, {"recipe.length": 2})):
        for method, share in (("independent", 0.0), ("bct", 0.5), ("l2", 0.25)):
            put(folder, method, share, changed=changed)
    text = "\n".join(lengths_study.lines(study, board))
    assert "| length 1 | length 2 |" in text and "| bct | 50 (" in text
    assert list(lengths_study.lines(study, tmp_path / "none")) == [
        "Records of one length only so far."
    ]


def test_tracks_side_by_side(tmp_path) -> None:
    """Shares within a seed by hand; an interval from three models on; what is missing is said."""
    dataset = {"name": "glyphs", "n_classes": 1898, "facts": {"train_classes": 1300}}
    of = {"protocol": "extended-class", "track": "glyphs", "dataset": dataset}
    for method, share in (("independent", 0.0), ("bct", 0.5)):
        for seed in range(3 if method == "independent" else 1):
            put(tmp_path, method, share, seed=seed, **of)
    for seed, share in enumerate((0.49, 0.5, 0.51)):
        put(tmp_path, "l2", share, seed=seed, **of)
    text = "".join(core_tracks.lines(str(tmp_path), "extended-class"))
    rows = {line.partition(" | ")[0]: line for line in text.splitlines()}
    assert "`glyphs` (rendered pictures, classes never seen in training)" in rows["| method"]
    assert "| 50 % (1 model) |" in rows["| `bct`"]
    assert "| 50 % ± " in rows["| `l2`"] and rows["| `l2`"].count("not measured") == 3
    assert "| `keep-old`" not in rows
