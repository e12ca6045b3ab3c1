"""Bad input: one clear line, exit code 2, no traceback."""

from __future__ import annotations

import csv
import json
import re
from functools import cache
from pathlib import Path

import pytest
import typer
from support.command import call
from support.mounts import small_disk
from support.small_sets import flat

from benchmark.cli import options
from benchmark.cli.app import app
from benchmark.config import registry
from benchmark.report.card import _costs

ROOT = Path(__file__).parents[2]
RUN = ("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--device", "cpu")


@pytest.fixture
def bench(monkeypatch):
    """The command, run in this process."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "120")
    return call


def refused(answer, *words: str) -> None:
    code, out, err = answer
    assert code == 2, (out, err)
    # Stages that ended before are reported as they end.
    lines = [line for line in err.splitlines() if line and not line.startswith("[")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    assert lines[0].startswith("bench: ")
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("run", "-m", "mixbtc", "-p", "open-class"), ("'mixbtc'", "'mixbct'")),
        (("run", "-m", "bct:destill", "-p", "open-class"), ("bct", "'destill'", "'distill'")),
        (("run", "-m", "bct", "-p", "open-clas"), ("'open-clas'", "'open-class'")),
        (("run", "-m", "bct", "-p", "open-class", "-t", "glyph"), ("'glyph'", "'glyphs'")),
        (("run", "--method", "bct"), ("'--method'", "'--methods'")),
        (("runn",), ("runn", "run")),
        (("run", "-m", "bct"), ("--protocol",)),
        (("run", "-p", "open-class"), ("--methods", "bench list methods")),
        (("run", "-p", "open-class", "--dry-run", "-m", ""), ("-m: expected a value, got none",)),
        (("table", "runs", "--seeds="), ("--seeds: expected a value, got none",)),
        (
            ("run", "-m", "bct", "-p", "arch-change", "-t", "toy", "--set", "new.model=vti"),
            ("arch-change", "toy", "'vti'", "'vit'"),
        ),
        (("run", "-p", "arch-change:transformer", "-t", "market1501", "--dry-run"), ("'vit'",)),
        ((*RUN, "--set", "old.heda=arcface"), ("'heda'", "'head'")),
        ((*RUN, "--set", "oldd.head=arcface"), ("'oldd'", "'old'")),
        ((*RUN, "--set", "old.head=arcfaces"), ("'arcface'",)),
        ((*RUN, "--set", "bct.wieght=2"), ("'wieght'", "'weight'")),
        ((*RUN, "--set", "recipe.epochs=many"), ("epochs", "'many'")),
        ((*RUN, "--set", "data.nois=1"), ("'nois'", "'noise'")),
        ((*RUN, "--set", "old.backbone=resnet"), ("backbone", "convnet-", "resnet")),
        ((*RUN, "--set", "oops"), ("'oops'",)),
        ((*RUN, "--seeds", "x"), ("--seeds", "'x'")),
        ((*RUN, "--first-seed", "-1"), ("first seed: expected whole numbers from 0", "-1")),
        ((*RUN, "--existing", "foo"), ("--existing", "foo", "skip")),
        (("run", "-m", "bct", "-p", "open-class", "-t", "omniglot"), ("omniglot", "--data-root")),
        (
            ("run", "-m", "bct", "-p", "open-class", "-t", "folder", "--data-root", "/no/such"),
            ("/no/such",),
        ),
        (("table", "/no/such"), ("/no/such",)),
        (("info", "mixbtc"), ("'mixbct'",)),
        (("check", "mixbtc"), ("'mixbct'",)),
        ((*RUN[:-1], "gpu"), ("'gpu'",)),
        (("perf", "rankin"), ("'rankin'", "'ranking'")),
    ],
)
def test_refused(bench, tmp_path, words, named) -> None:
    extra = ("--out", tmp_path / "o", "--store", tmp_path / "s") if words[:1] == ("run",) else ()
    refused(bench(*words, *extra), *named)


def test_output_folder_is_checked_before_training(bench, tmp_path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    refused(bench(*RUN, "--out", blocked / "o", "--store", tmp_path / "s"), "--out", str(blocked))
    assert not (tmp_path / "s").exists()


def test_image_that_cannot_be_decoded(bench, tmp_path) -> None:
    root = flat(tmp_path / "d")
    (root / "c" / "1.png").write_bytes(b"no picture")
    words = [word if word != "toy" else "folder" for word in RUN]
    places = ("--data-root", root, "--out", tmp_path / "o", "--store", tmp_path / "s")
    refused(bench(*words, *places), "1.png")


def test_full_disk(bench, tmp_path) -> None:
    with small_disk(tmp_path / "disk", 300 * 1024) as disk:
        refused(bench(*RUN, "--store", disk / "s", "--out", tmp_path / "o"), "full")
        assert list((disk / "s").rglob("*")), "what was stored must stay"


def test_damaged_record(bench, tmp_path) -> None:
    path = tmp_path / "seed-0.json"
    for text, named in (("{", "JSON"), ('{"schema": 9}', "9")):
        path.write_text(text)
        refused(bench("table", tmp_path), "seed-0.json", named)


def test_lists_and_cards(bench) -> None:
    code, out, _ = bench("list", "methods", "--json")
    listed = {row["id"]: row for row in json.loads(out)}
    assert code == 0
    assert {"independent", "bct", "l2", "mixbct", "fct"} <= set(listed)
    assert listed["bct"]["variants"] == ["old", "distill", "synthesize"]
    assert "omniglot" in bench("list", "tracks")[1]
    assert "extended-data" in bench("list", "protocols")[1]
    card = bench("info", "mixbct")[1]
    assert "ratio" in card
    assert "section 4.3" in card
    assert "training cost" in card
    assert "Architecture change: deeper" in bench("info", "arch-change:deeper")[1]


NAMES = [*registry.method_files(), *registry.protocol_files(), *registry.track_files()]


def test_every_card_fits_a_screen(monkeypatch) -> None:
    """24 lines of 80 characters, with the command above and the prompt below."""
    monkeypatch.setattr("benchmark.report.card._costs", cache(_costs))  # for either length
    # Two numbers of many digits, with the most words: to read those of records takes longest.
    monkeypatch.setattr(
        "benchmark.report.card._added", lambda path: -12_345_678 if "deeper" in str(path) else 8**8
    )
    for name in NAMES:
        code, out, _ = call("info", name)
        lines = out.splitlines()
        assert code == 0 and len(lines) <= 22, name
        assert max(map(len, lines)) <= 80, (name, lines)
        told = lines[-1] == f"Everything: bench info {name} --all"
        assert told or not any(line.endswith("…") for line in lines), name
        every = [*lines, *call("info", name, "--all")[1].splitlines()]
        assert not [line for line in every if re.search(r": +(None|\{\}|\[\])$", line)], name
    card = call("info", "mixbct")[1]
    assert "ratio: 0.3 # alpha, section 4.3" in card and "plain: drop 0.0" in card


def test_lists_say_how_long_a_first_run_takes() -> None:
    """From the committed file alone; a track of half the images takes half the time."""
    rows = {kind: {row["id"]: row for row in json.loads(call("list", kind, "--json")[1])}
            for kind in ("tracks", "protocols")}  # fmt: skip
    committed = list(csv.DictReader((Path(ROOT) / "results" / "times.csv").open(encoding="utf-8")))
    first = [row for row in committed if row["work"] == "first run"]
    for kind, key in (("tracks", "track"), ("protocols", "protocol")):
        known = {row[key] for row in first}
        for name in known:
            least = min(float(row["seconds"]) for row in first if row[key] == name)
            assert rows[kind][name]["minutes"] == round(least / 60, 1)
    tracks = rows["tracks"]
    assert tracks["toy"]["minutes"] is None is tracks["glyphs-large"]["minutes"]
    assert tracks["glyphs-short"]["minutes"] == pytest.approx(
        tracks["glyphs"]["minutes"] / 2, abs=0.1
    )
    lines = call("list", "tracks")[1].splitlines()
    glyphs = next(line for line in lines if line.startswith("glyphs "))
    assert f" {tracks['glyphs']['minutes']:.1f} min " in glyphs and lines[-1].startswith(
        "Minutes: "
    )


def test_dry_run_prints_the_plan_and_runs_nothing(bench, tmp_path) -> None:
    code, out, _ = bench(*RUN, "--dry-run", "--store", tmp_path / "s", "--out", tmp_path / "o")
    assert code == 0
    assert "train old model (seed 0)" in out
    assert "0 stored" in out and out.endswith("to do; no record of toy says how long\n")
    assert not (tmp_path / "o").exists()
    assert not (tmp_path / "s" / "stages").exists()


def test_a_plan_says_what_records_that_are_there_leave_to_do(tmp_path) -> None:
    folders = ("--store", tmp_path / "s", "--out", tmp_path / "o")
    words = (*RUN, "--records-only", "--set", "recipe.epochs=1", *folders)
    assert call(*words)[0] == 0
    for existing, left in (("skip", "12 stored, 0"), ("missing", "0 stored, 0"),
                           ("overwrite", "0 stored, 12")):  # fmt: skip
        code, out, _ = call(*words, "--existing", existing, "--dry-run")
        assert code == 0 and f"stages, {left} to do" in out, existing
    for path in tmp_path.glob("o/**/bct/seed-0.json"):
        path.unlink()
    assert "stored  evaluate bct" in call(*words, "--existing", "missing", "--dry-run")[1]


def test_blanks_between_methods_mean_nothing(bench, tmp_path) -> None:
    code, out, err = bench(
        "run", "-m", " bct , l2", "-p", "open-class", "-t", "toy", "--dry-run",
        "--out", tmp_path / "o", "--store", tmp_path / "s",
    )  # fmt: skip
    assert code == 0, err
    assert "record  bct, seed 0" in out and "record  l2, seed 0" in out


def test_a_dry_run_needs_no_methods(bench, tmp_path) -> None:
    code, out, _ = bench("run", "-p", "open-class", "-t", "toy", "--dry-run", "--store", tmp_path)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("methods independent") and "-m" in lines[0]
    assert "to do   evaluate independent (seed 0)" in out and "new     classes" in out


def test_a_dry_run_of_settings_says_which_is_which(bench, tmp_path) -> None:
    words = ("run", "-p", "arch-change", "-t", "market1501", "--dry-run", "--store", tmp_path)
    code, out, err = bench(*words)
    assert code == 0
    heads = [line for line in out.splitlines() if line.startswith("arch-change:")]
    assert len(heads) == 7
    assert heads[1] == "arch-change:deeper (Architecture change: deeper) on market1501"
    assert err.startswith("bench: arch-change:transformer does not suit track market1501: ")
    assert "no model 'vit'" in err and err.count("\n") == 1
    swept = bench(*words, "--sweep", "old.dim=64,128")
    assert "(Architecture change: deeper) on market1501, old.dim=128\n" in swept[1]
    assert swept[2] == err, "said once"


def test_the_card_of_a_protocol_is_read_line_by_line(bench) -> None:
    lines = bench("info", "arch-change", "--all")[1].splitlines()
    at = lines.index("generations:")
    assert lines[at + 1 : at + 3] == ["  old:", "    classes:   0.0, 0.5"]
    at = lines.index("  longer:")
    assert lines[at + 1 : at + 5] == [
        "    title:     twice as long", "    set:", "      old.model: deep", "      old.dim: x0.5",
    ]  # fmt: skip
    assert not any("{'" in line for line in lines)


def test_the_card_of_a_track_says_how_its_data_are_read() -> None:
    out = call("info", "folder", "--all")[1]
    words = " ".join(out.split())
    assert "image of the other classes is both a query and a gallery item" in words
    assert "channels: 3 # 3 for colour, 1 for grey" in words and "pattern: ''" in words


def test_help_has_examples(bench) -> None:
    verbs = ("run", "list", "info", "check", "doctor", "perf")
    for verb in (*verbs, "table", "plot", "show", "compare", "published", "schema"):
        code, out, _ = bench(verb, "--help")
        assert code == 0
        assert f"bench {verb}" in out
        assert "Example" in out


def test_every_verb_is_in_a_group() -> None:
    root = typer.main.get_command(app)
    assert {command.rich_help_panel for command in root.commands.values()} == {*options.PANELS}


def test_help_measures_first_and_maintains_last() -> None:
    out = call("--help")[1]
    found = re.findall("|".join(options.PANELS), out)
    assert found == ["Measure methods", "Your own vectors", "Add a method", "Look up", "Maintain"]


def test_what_a_method_was_built_from_is_told(bench):
    _, listed, _ = bench("list", "methods")
    lines = {line.split()[0]: line for line in listed.splitlines()}
    assert lines["csd"].endswith("(second-hand)") and lines["bct"].endswith("(paper)")
    _, text, _ = bench("list", "methods", "--json")
    assert {row["id"]: row["fidelity"] for row in json.loads(text)}["lce"] == "code"
    for name, words in (("rank-merge", "second-hand: neither"), ("score-merge", "paper: the"),
                        ("score-merge:z-score", "second-hand: neither")):  # fmt: skip
        _, card, _ = bench("info", name)
        assert any(line.split() == ["fidelity:", *line.split()[1:]] and words in line
                   for line in card.splitlines())  # fmt: skip
