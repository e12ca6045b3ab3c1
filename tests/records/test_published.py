"""Published numbers: what the files say, and what they may not say."""

from __future__ import annotations

import csv
import io
import shutil
from collections import Counter
from pathlib import Path

import pytest
from support.command import call
from support.stored import plain, write

from benchmark.errors import BenchError
from benchmark.records import published
from benchmark.records.files import read_record
from benchmark.records.published import COLUMNS, beside, read_published, select
from benchmark.records.record import Record

FOLDER = Path(__file__).parents[2] / "results" / "published"


@pytest.fixture(scope="module")
def every() -> published.Published:
    return read_published(FOLDER)


def test_five_papers(every) -> None:
    assert Counter(n.paper for n in every.numbers) == {
        "bct": 254, "fct": 299, "bt2": 305, "fastfill": 135, "mixbct": 605,
    }  # fmt: skip
    assert all(paper.caveats for paper in every.papers.values())


@pytest.mark.parametrize(
    ("paper", "table", "method", "case", "metric", "printed", "fraction"),
    [
        ("bt2", "Table 1", "independent", "old/old", "cmc_at_1", "33.6", 0.336),
        ("mixbct", "Table 2", "mixbct", "", "avg", "0.8507", 0.8507),
        ("bct", "Table 1b", "independent", "old/old", "tar_at_far_1e-4", "77.86", 0.7786),
    ],
)
def test_numbers_as_printed(every, paper, table, method, case, metric, printed, fraction) -> None:
    found = [
        n
        for n in every.numbers
        if (n.paper, n.table, n.method, n.metric, n.printed)
        == (paper, table, method, metric, printed)
    ]
    assert len(found) >= 1
    assert found[0].case == case
    assert found[0].fraction == pytest.approx(fraction)


def test_counts_are_no_fractions(every) -> None:
    assert {n.fraction for n in every.numbers if n.unit in ("M", "count")} == {None}


def test_selection(every) -> None:
    found = select(every, method=["fct"], dataset=["imagenet"], metric=["cmc_at_1"])
    assert {n.method.partition(":")[0] for n in found} == {"fct"}
    assert len({n.method for n in found}) > 1
    assert {n.method for n in select(every, method=["fct:mixup"])} == {"fct:mixup"}
    with pytest.raises(BenchError, match="did you mean 'imagenet'"):
        select(every, dataset=["imagnet"])


def measured(tmp_path, **fields) -> Record:
    return read_record(write(tmp_path / "seed-0.json", plain() | fields))


def test_beside_measured_ones_where_protocol_and_data_agree(every, tmp_path) -> None:
    assert beside(every, [measured(tmp_path)]) == []
    cifar = measured(
        tmp_path, protocol="extended-class", track="cifar100", dataset={"name": "cifar100"}
    )
    found = beside(every, [cifar])
    assert found
    assert {(n.protocol, n.dataset) for n in found} == {("extended-class", "cifar100")}
    assert beside(every, [measured(tmp_path, track="cifar100", changed={"old.dim": 4})]) == []
    faces = beside(every, [measured(tmp_path, track="ms1mv3-ijbc", dataset={"name": "x"})])
    assert {n.dataset for n in faces} == {"ijbc", "ijbc-1v1", "ijbc-1vn", "ms1mv3"}


def test_shown_apart(tmp_path) -> None:
    path = write(
        tmp_path / "seed-0.json",
        plain() | {"protocol": "extended-class", "track": "cifar100", "dataset": {"name": "c"}},
    )
    code, out, err = call("table", path, "--published")
    assert (code, err) == (0, "")
    table, said, apart = out.partition("Published: extended-class on cifar100")
    assert said
    assert "33.6" not in table
    assert "never ranked" in apart
    code, out, _ = call("table", path, "--published", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    kinds = Counter(row["kind"] for row in rows)
    assert kinds["published"] > 10
    assert kinds["method"] > 2
    one = next(r for r in rows if r["kind"] == "published" and r["method"] == "bt2")
    assert one["reason"].startswith("bt2, Table")
    assert 0 <= float(one["value"]) <= 1
    code, out, _ = call("table", write(tmp_path / "seed-0.json", plain()), "--published")
    assert code == 0
    assert "No paper prints numbers" in out


def test_the_verb() -> None:
    code, out, err = call("published")
    assert (code, err) == (0, "")
    assert all(f"{n} numbers" in out for n in (254, 299, 305, 135, 605))
    code, out, _ = call("published", "-f", "csv")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 1598
    words = ("published", "-p", "open-class", "--metrics", "avg", "-m", "mixbct")
    for form in ("terminal", "markdown", "latex"):
        code, out, _ = call(*words, "-f", form)
        assert code == 0
        assert "0.8507" in out
        assert "1: " in out  # notes stay with their numbers
    for bad, said in ((("--paper", "mixbtc"), "'mixbct'"), (("/no/such",), "papers.yaml")):
        code, _, err = call("published", *bad)
        assert code == 2
        assert said in err
    code, _, err = call("published", "--paper", "bct", "--dataset", "cifar100")
    assert (code, "no number has all of these" in err) == (2, True)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("protocol", "open-clas", "protocol: unknown 'open-clas'; did you mean 'open-class'?"),
        ("dataset", "imagnet", "did you mean 'imagenet'?"),
        ("method", "mixbtc", "did you mean 'mixbct'?"),
        ("metric", "cmc@1", "metric: "),
        ("unit", "percent", "unit: expected '%', 'fraction', 'M' or 'count'"),
        ("value", "", "value: expected a value"),
        ("value", "0,5", "expected a number such as 77.86"),
        ("value", "nan", "expected a number"),
        ("value", "9" * 400, "expected a number such as 77.86"),
        ("note", "n" * 1001, "note: "),
        ("value", "150", "expected at most 1, got"),
        ("std", "-1", "value: expected at most"),
        ("query", "", "query and gallery: expected both"),
        ("note", "two\nlines", "note: unprintable"),
        ("table", " Table 1", "table: unprintable text or spaces"),
    ],
)
def test_refused(tmp_path, column, value, said) -> None:
    folder = tmp_path / "published"
    shutil.copytree(FOLDER, folder)
    path = folder / "mixbct.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    row = next(r for r in rows if r["unit"] == "fraction" and r["query"])
    row[column] = value
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(out.getvalue())
    with pytest.raises(BenchError, match="line ") as caught:
        read_published(folder)
    assert said in str(caught.value)
    assert "mixbct.csv: line " in str(caught.value)


def test_refused_files(tmp_path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(FOLDER, folder)
    lines = (folder / "bct.csv").read_text().splitlines(keepends=True)
    (folder / "bct.csv").write_text("".join([*lines, lines[-1]]))
    with pytest.raises(BenchError, match="the same as line"):
        read_published(folder)
    (folder / "bct.csv").write_text("".join(lines[1:]))
    with pytest.raises(BenchError, match="expected the columns table, protocol"):
        read_published(folder)
    (folder / "bct.csv").rename(folder / "bcd.csv")
    with pytest.raises(BenchError, match=r"bcd\.csv: not among the papers"):
        read_published(folder)
    (folder / "bcd.csv").unlink()
    with pytest.raises(BenchError, match=r"bct\.csv: cannot be read"):
        read_published(folder)
    (folder / "bct.csv").symlink_to("/dev/zero")
    with pytest.raises(BenchError, match=r"bct\.csv: expected a regular file"):
        read_published(folder)
    (folder / "bct.csv").unlink()
    (folder / "bct.csv").write_text(lines[0] + "a\n" * 20_001)
    with pytest.raises(BenchError, match=r"bct\.csv: expected at most 20000 numbers"):
        read_published(folder)
