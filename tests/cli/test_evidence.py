"""``bench claims``, ``bench transfer`` and ``bench results`` on records made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import call
from support.records import make_record

from benchmark.records.files import write_record
from benchmark.report.text_table import simple_table

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(tmp_path):
    """Two tracks, three seeds, five methods that keep their order."""
    scores = {"bct": 0.5, "l2": 0.6, "fct": 0.7, "mixbct": 0.8, "bt2": 0.9}
    for track in ("glyphs", "omniglot"):
        for method, score in scores.items():
            for seed in range(3):
                record = make_record(
                    method, score + 0.003 * seed, seed=seed, track=track,
                    dataset={"name": track}, protocol="extended-class",
                )  # fmt: skip
                write_record(record.path(tmp_path), record)
    return tmp_path


def test_claims(runs) -> None:
    code, out, err = call("claims", str(runs), "--only", "fct-4", "--show", "lines")
    assert (code, err) == (0, "")
    assert "fct new/old > bct new/old" in out and "agrees" in out
    code, out, _ = call("claims", str(runs), "--only", "fct-4", "--json")
    rows = json.loads(out)
    assert {(r["track"], r["verdict"], r["seeds"]) for r in rows} == {
        ("glyphs", "agrees", 3), ("omniglot", "agrees", 3)
    }  # fmt: skip
    code, out, _ = call("claims", str(runs), "--show", "counts", "-f", "csv")
    assert code == 0 and out.startswith("paper,holds on photographs,") and "\nall," in out
    code, out, _ = call("claims", str(runs), "--show", "counts", "--json")
    assert json.loads(out)[-1]["paper"] == "all"
    for words, got in ((("-f", "csv"), "--format csv"), (("--json",), "--json")):
        code, out, err = call("claims", str(runs), "--show", "lists", *words)
        assert (code, out) == (2, "")
        assert err == f"bench: --show lists: expected no format but markdown, got {got}\n"
    code, out, err = call("claims", str(runs), "--only", "fct-99")
    assert code == 2 and "unknown claim 'fct-99'; did you mean 'fct-9'?" in err


def test_transfer(runs, tmp_path) -> None:
    code, out, err = call("transfer", str(runs), "--json", "--out", str(tmp_path / "out"))
    assert code == 0, err
    (row,) = json.loads(out)["transfer"]
    assert (row["left"], row["right"], row["methods"]) == ("glyphs", "omniglot", 5)
    assert row["tau"] == pytest.approx(1.0)
    assert row["verdict"] == "transfers"
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"transfer.csv", "transfer.json", "transfer-regret.csv"} <= names
    assert {"transfer-cmc_at_1.png", "transfer-gaps.png"} <= names
    header, line = (tmp_path / "out" / "transfer.csv").read_text().splitlines()
    assert dict(zip(header.split(","), line.split(","), strict=True))["verdict"] == "transfers"


def test_csv_of_transfer_without_two_tracks_says_so(runs, monkeypatch) -> None:
    papers = simple_table("", "transfer-papers", ["protocol"], [], [["open-class"]])
    monkeypatch.setattr("benchmark.studies.transfer.tables.tables", lambda *_: [papers])
    code, out, err = call("transfer", runs, "-t", "glyphs", "-f", "csv")
    assert (code, out) == (0, "")
    assert err == "No two tracks have two methods of one protocol in common.\n"


def test_results_refuses_roots_of_unknown_tracks(runs) -> None:
    code, _, err = call("results", "status", "--data-root", "omniglt=/")
    assert code == 2 and "unknown track 'omniglt'; did you mean 'omniglot'?" in err
    code, _, err = call("results", "status", "--data-root", "omniglot")
    assert code == 2 and "--data-root: expected TRACK=DIR, got 'omniglot'" in err


def test_a_folder_of_results_that_is_not_there_is_named(tmp_path, monkeypatch) -> None:
    code, out, err = call("results", "status", "--out", tmp_path / "gone")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert f"--out: expected a folder of records, got no such folder: {tmp_path / 'gone'}" in err
    (tmp_path / "file").write_text("")
    code, _, err = call("results", "status", "--out", tmp_path / "file")
    assert code == 2 and "got a file" in err
    monkeypatch.chdir(tmp_path)
    board = ROOT / "results" / "core-frozen.yaml"
    chosen = ("-t", "banking77", "-p", "open-class")
    code, _, err = call("results", "status", "--board", board, *chosen)
    assert code == 0 and "there is no folder results here" in err
