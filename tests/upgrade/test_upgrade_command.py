"""``bench upgrade``: files in, a report out; what is damaged ends in one line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.command import call
from support.upgrades import planted, unit
from support.vector_files import write

from benchmark import Conversion, convert_file, read_vectors, upgrade
from benchmark.cli import upgrading
from benchmark.contract import fitting
from benchmark.upgrade.read.request import Interim

N, Q = 400, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of a small upgrade, as a user has them: text ids, another order on each side."""
    root = tmp_path_factory.mktemp("upgrade")
    made = planted(n=N, q=Q, dim=8)
    names = np.array([f"item-{k}" for k in range(N)])
    rows = made.sample(250)
    write(root / "old.parquet", made.old, names)
    write(root / "new.parquet", made.new[rows], names[rows])
    write(root / "q_new.npy", made.queries, np.arange(Q))
    order = np.random.default_rng(3).permutation(Q + 1)  # the old model has one query more
    asked = np.r_[made.old_queries, made.old[:1]]
    write(root / "q_old.npy", asked[order], order)
    lines = [f"{q} 0 {names[row]} 1" for q, row in enumerate(made.relevant)]
    (root / "qrels.tsv").write_text("\n".join(lines) + "\n")
    (root / "texts.tsv").write_text("".join(f"{q}\t<b>query {q}</b>\n" for q in range(Q)))
    reads = ["id\treads\n", *(f"{name}\t{k}\n" for k, name in enumerate(names)), "gone\t9\n"]
    (root / "reads.tsv").write_text("".join(reads))
    return root


def words(folder, **changes):
    """The command's words; a file in place of one of the folder's."""
    files = {
        "--old-gallery": "old.parquet", "--new-sample": "new.parquet", "--queries": "q_new.npy",
        "--old-queries": "q_old.npy", "--qrels": "qrels.tsv",
    }  # fmt: skip
    given = {option: folder / name for option, name in files.items()} | {"--maps": "procrustes"}
    for name, value in changes.items():
        given["--" + name.replace("_", "-")] = value
    return [
        word for option, value in given.items() if value is not None for word in (option, value)
    ]


def test_a_report_from_files(folder, tmp_path):
    page, numbers = tmp_path / "upgrade.html", tmp_path / "upgrade.json"
    code, out, err = call(
        "upgrade", *words(folder), "--items", 40_000_000, "--no-second-model", "--wanted", 0.3,
        "--report", page, "--query-texts", folder / "texts.tsv",
        "--reads", folder / "reads.tsv",
    )  # fmt: skip
    assert (code, err) == (0, "")
    document = json.loads(numbers.read_text())
    assert document["verdict"]["strategy"] == "procrustes"
    assert document["assumed"]["items"] == 40_000_000 and not document["constraints"]["extra_runs"]
    assert {each["order"] for each in document["backfilling"]} == {"random", "reads"}
    assert "Convert stored vectors (procrustes)" in out and str(page) in out
    said = " ".join(out.split())
    assert f"{N - 1:,} of {N:,} items are read; 1 of {N + 1:,} lines name no item" in said
    assert f"queries: {Q} rows paired by id; 0 only in" in said and ", 1 only in" in said
    text = page.read_text()
    assert "<b>query" not in text and "&lt;b&gt;query" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "upgrade.html", "upgrade.json", "upgrade.map",
    }  # fmt: skip
    # The map is one that `bench convert` applies.
    convert_file(tmp_path / "upgrade.map", folder / "old.parquet", tmp_path / "converted.npy")
    ids, converted = read_vectors(tmp_path / "converted.npy")
    _, old = read_vectors(folder / "old.parquet")
    assert ids[:2].tolist() == ["item-0", "item-1"]
    assert (converted == Conversion.load(tmp_path / "upgrade.map").convert(old)).all()


def changed(row=0, value=1, n=N):
    """The first old vectors, one of them another."""

    def write_changed(path, old, names):
        old[row] = value
        write(path, old[:n], names[:n])

    return write_changed


def zero_query(path, *_):
    """Zeros in a row of the file, which has another order than the new queries."""
    order = np.arange(Q)[::-1]
    write(path, np.where(order[:, None] == 4, 0, np.ones((Q, 8))).astype(np.float32), order)


def half(path, old, names):
    write(path, old, names)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def text(words):
    return lambda path, *_: path.write_text(words)


DAMAGES = {
    "dimension": ("queries", "q.npy", "expected vectors of 8 numbers as in ",
                  lambda path, *_: write(path, np.ones((Q, 5), np.float32), np.arange(Q))),
    "nan": ("old_gallery", "g.parquet", "got NaN or infinity in row 7", changed(7, np.nan)),
    "zeros": ("old_gallery", "g.parquet", "got zeros in row 9, id 'item-9'", changed(9, 0)),
    "zero query": ("old_queries", "q.npy", f"got zeros in row {Q - 5}, id 4", zero_query),
    "strangers": ("old_gallery", "g.parquet", "ids: expected some of",
                  lambda path, old, _: write(path, old, [f"other-{k}" for k in range(N)])),
    "other qrels": ("qrels", "qrels.tsv", "expected ids of the vectors", text("0 0 nobody 1\n")),
    "truncated": ("old_gallery", "g.parquet", "expected parquet, got what cannot be read", half),
    "no such dataset": ("old_gallery", "g.h5:vectors", "got the name 'vectors'; known: train",
                        lambda path, old, _: write(path, old)),
    "few": ("new_sample", "g.parquet", "at least 100 items", changed(n=20)),
    "queries": ("old_queries", "q.npy", "a vector of every query",
                lambda path, old, _: write(path, old[:5], np.arange(5))),
    "reads": ("reads", "reads.tsv", "line 1: reads: expected a whole number, got 'many'",
              text("item-1\tmany\n")),
    "texts of others": ("query_texts", "texts.tsv", "expected ids of queries, got none, the first ",
                        text("x0\twords\n")),
    "never read": ("reads", "reads.tsv", "expected reads of items, got 0 of each item",
                   text("item-1\t0\n")),
}  # fmt: skip
"""Damage -> option, its file, what must be said, and what writes the file."""


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_inputs_end_in_one_line(folder, tmp_path, kind):
    option, name, said, damage = DAMAGES[kind]
    _, old = read_vectors(folder / "old.parquet")
    damage(tmp_path / name.partition(":")[0], old, np.array([f"item-{k}" for k in range(N)]))
    out = tmp_path / "out"
    out.mkdir()
    code, stdout, err = call(
        "upgrade", *words(folder, **{option: f"{tmp_path}/{name}"}), "--report", out / "page.html",
        "--json", out / "page.json",
    )  # fmt: skip
    assert (code, stdout) == (2, "") and err.count("\n") == 1
    assert said in err and name in err
    assert not list(out.iterdir())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"queries": None}, "missing option '--queries'"),
        ({"gallery_labels": "x.npy"}, "missing option '--query-labels'"),
        ({"maps": "linaer"}, "did you mean 'linear'"),
        ({"items": 0}, "--items"),
        ({"report": "/dev/null/x.html"}, "--report"),
        (
            {"new_sample": None, "queries": None, "new": "a=x.npy,y.npy"},
            "bench: --new: expected two or more, got 1",
        ),
        ({"new": "a=x.npy,y.npy"}, "bench: --new: expected them alone, got --new-gallery or"),
        (
            {"new_sample": None, "pairs_old": "x.npy"},
            "bench: --pairs-old: expected --pairs-new, too: the same texts by the new model",
        ),
        ({"pairs_old": "x.npy"}, "bench: --pairs-old: expected --pairs-new, too"),
        (
            {"query_labels": "x.npy", "gallery_labels": "x.npy"},
            "bench: --qrels, --query-labels: expected one of them, got both",
        ),
        ({"wanted": 2}, "bench: --wanted: expected a share in (0, 1], got 2"),
        ({"fail_if": "share"}, "bench: --fail-if: expected a condition"),
    ],
)
def test_wrong_options(folder, changed, said):
    code, _, err = call("upgrade", *words(folder, **changed))
    assert code == 2 and said in err and err.count("\n") == 1


def test_a_place_that_is_taken_is_told_before_the_work(folder, tmp_path):
    (tmp_path / "page.map").mkdir()
    (tmp_path / "page.map" / "mine").touch()
    (tmp_path / "mine.json").write_text("[1]")
    for options, said in [
        ({"report": tmp_path / "page.html"}, "--save-map: "),
        ({"report": tmp_path / "mine.html"}, "mine.json is something else than a report's numbers"),
    ]:
        # A file that is not there would be told first, if anything were read.
        code, _, err = call("upgrade", *words(folder, old_gallery=tmp_path / "no.npy", **options))
        assert code == 2 and said in err and err.count("\n") == 1
    assert {path.name for path in tmp_path.rglob("*")} == {"page.map", "mine", "mine.json"}


def test_the_demo_has_vectors_of_its_own(folder):
    code, _, err = call("upgrade", "--demo", *words(folder))
    assert code == 2 and "--demo has vectors of its own" in err
    for option in ("--old-queries", "--qrels", "--query-labels", "--new", "--id-column"):
        code, out, err = call("upgrade", "--demo", option, "x")
        assert (code, out) == (2, "")
        assert err == f"bench: upgrade: --demo has vectors of its own, got {option}\n"


def test_options_without_effect_are_refused(folder, tmp_path):
    """A gate or a page that is asked for and would not be there."""
    doctor = ("doctor", folder / "old.parquet")
    for first, given, named in (
        (doctor, ("--fail-if", "share<0.9"), "--fail-if"), (doctor, ("--all",), "--all"),
        (doctor, ("--report", tmp_path / "page.html"), "--report"),
        (doctor, ("--distance", "l2"), "--distance"), (doctor, ("--seed", 3), "--seed"),
        (("--like", "minilm-l6:bge-small"), ("--json", tmp_path / "x.json"), "--json"),
        (("--like", "minilm-l6:bge-small"), ("--new", "a=b,c"), "--new"),
    ):  # fmt: skip
        code, out, err = call("upgrade", *first, *given)
        assert (code, out) == (2, "")
        assert err == f"bench: upgrade: {first[0]} has no use for {named}\n"
    assert not [*tmp_path.iterdir()]
    own = "--id-column", "id", "--vector-column", "vector", "--json", tmp_path / "found.json"
    assert call("upgrade", *doctor, *own)[0] == 0


def test_what_is_done_is_told_when_nobody_looks(capsys, monkeypatch):
    """A line a minute, however much is said meanwhile; results at once."""
    now = [0.0]
    monkeypatch.setattr(upgrading.time, "monotonic", lambda: now[0])
    with upgrading.Listener() as tell:
        for second in range(150):
            now[0] = float(second)
            tell(f"second {second} [x]")
            if second == 5:
                tell(Interim("so far, linear 41.0"))
    assert capsys.readouterr().err.splitlines() == [
        "so far, linear 41.0", "second 60 [x]", "second 120 [x]",
    ]  # fmt: skip


def test_quick_maps_are_scored_before_others_are_trained(folder, monkeypatch):
    short = fitting.RECIPE.model_copy(update={"transform_steps": 60})
    monkeypatch.setattr(fitting, "RECIPE", short)
    told = []
    report = upgrade(
        folder / "old.parquet", folder / "new.parquet", folder / "q_new.npy",
        folder / "q_old.npy", qrels=folder / "qrels.tsv", maps="residual-mlp,linear",
        tell=told.append,
    )  # fmt: skip
    (interim,) = [line for line in told if isinstance(line, Interim)]
    assert re.match(r"so far, nDCG@10 among \d+ held-out items: .*linear \d", interim)
    trained = [told.index(line) for line in told if line.startswith("fitting residual-mlp")]
    assert told.index("fitting linear, 1 of 1") < told.index(interim) < min(trained)
    # Other closed forms were not tried.
    assert not [line for line in report.document["inputs"]["told"] if "--maps quick" in line]
    report = upgrade(
        folder / "old.parquet", folder / "new.parquet", folder / "q_new.npy",
        folder / "q_old.npy", qrels=folder / "qrels.tsv", maps="residual-mlp,quick",
    )  # fmt: skip
    quick = [line for line in report.document["inputs"]["told"] if "--maps quick would do" in line]
    assert len(quick) == (report.recommended != "residual-mlp")
    assert "".join(quick) in " ".join(str(report).split())


@pytest.mark.slow
def test_the_demo(tmp_path):
    code, out, _ = call("upgrade", "--demo", "--report", tmp_path / "demo.html")
    assert code == 0 and "Embed everything again" in out
    assert (tmp_path / "demo.html").stat().st_size < 200_000


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path, monkeypatch):
    """From parquet files to the page, and the gallery converted by the map beside it."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    lines = re.findall(r"^    bench ((?:upgrade --old|convert upgrade).*)$", readme, re.M)
    made = planted(n=4000, q=200, dim=32)
    rows = made.sample(2500)
    stretch = np.geomspace(0.1, 10, 32, dtype=np.float32)  # only stored vectors can be set right
    old, old_queries = made.old * stretch, made.old_queries * stretch
    monkeypatch.chdir(tmp_path)
    names = np.array([f"item-{k}" for k in range(len(made.old))])
    for name, vectors, ids in (
        ("old", old, names), ("new", made.new[rows], names[rows]),
        ("q_new", made.queries, np.arange(200)), ("q_old", old_queries, np.arange(200)),
    ):  # fmt: skip
        write(tmp_path / f"{name}.parquet", vectors, ids)
    judged = [f"{q}\t{names[row]}\t1" for q, row in enumerate(made.relevant)]
    (tmp_path / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    assert len(lines) == 2
    for line in lines:
        code, _, err = call(*line.split())
        assert (code, err) == (0, ""), line
    assert "procrustes" in Path("upgrade.html").read_text()
    converted = read_vectors("converted.parquet")[1]
    np.testing.assert_array_equal(converted, Conversion.load("upgrade.map").convert(old))
    assert np.median((unit(converted) * unit(made.new)).sum(1)) > 0.95
