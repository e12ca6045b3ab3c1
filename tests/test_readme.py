"""Documents: examples run, commands exist, links lead somewhere, generated parts are up to date."""

from __future__ import annotations

import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from generate import renew
from support.command import call
from typer.testing import CliRunner

from benchmark.config import registry

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [
    README, ROOT / "CONTRIBUTING.md", ROOT / "protocols" / "README.md",
    *sorted((ROOT / "results").glob("*.md")), *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "results" / "studies" / "README.md",
]  # fmt: skip
GENERATED = re.compile(r"<!-- (?:bench|docs|records|plans) .+? -->\n.*?<!-- end -->", re.S)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


def python_block(page: Path, holding: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    (block,) = [b for b in blocks if holding in b]
    return block


def commands(page: Path) -> list[str]:
    """Indented ``bench`` lines and those in backticks, without shell comments."""
    text = re.sub(r" *\\\n *", " ", GENERATED.sub("", page.read_text()))
    found = re.findall(r"^ {4,}(bench [^\n]+)", text, re.M) + re.findall(r"`(bench [^`]+)`", text)
    return [re.sub(r" +#.*", "", line) for line in found]


@pytest.fixture
def package(tmp_path) -> Path:
    """The README's method as a package of somebody else."""
    (tmp_path / "cosine_method.py").write_text(python_block(README, "CompatibleTraining"))
    info = tmp_path / "cosine_method-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cosine-method\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[compatbench.methods]\ncosine = cosine_method:Cosine\n")
    return tmp_path


@pytest.mark.slow
def test_method_example(bench, package) -> None:
    path = f"{ROOT}{os.pathsep}{package}"
    code, out, err = bench("check", "cosine", PYTHONPATH=path)
    assert code == 0, err
    assert "cosine is fine" in out
    assert "weight" in bench("info", "cosine", PYTHONPATH=path)[1]
    assert "Cosine: each new feature" in bench("list", "methods", PYTHONPATH=path)[1]


def test_python_example_names_exist() -> None:
    import benchmark

    for page in (README, ROOT / "docs" / "running.md"):
        code = python_block(page, "import benchmark\n")
        for name in re.findall(r"benchmark\.(\w+)\(", code):
            assert callable(getattr(benchmark, name))


@pytest.mark.parametrize("page", ["README.md", "docs/own-vectors.md"])
def test_own_vectors(page, tmp_path, monkeypatch) -> None:
    """The block on plain arrays runs, and the file it writes holds the array it returns."""
    rng = np.random.default_rng(0)
    shapes = {"old": (50, 6), "new": (50, 5), "gallery": (700, 6), "queries": (9, 5)}
    for name, shape in shapes.items():
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(python_block(ROOT / page, "get_method"), names)
    assert names["converted"].shape == (700, 5) and names["queries"].shape == (9, 5)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(np.load("converted.npy"), names["converted"])


def test_files_of_vectors(tmp_path, monkeypatch) -> None:
    """The block that reads them runs."""
    import h5py
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    import benchmark

    rng = np.random.default_rng(0)
    ids = [f"item-{i}" for i in range(50)]
    old, new = rng.standard_normal((50, 6)), rng.standard_normal((50, 5))
    pq.write_table(pa.table({"id": ids, "vector": list(old)}), tmp_path / "old.parquet")
    with h5py.File(tmp_path / "new.hdf5", "w") as file:
        file["embeddings"], file["ids"] = new, ids
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"method": benchmark.get_method("linear")}
    exec(python_block(ROOT / "docs" / "own-vectors.md", "read_vectors"), names)
    assert names["conversion"].dims.new == 5  # type: ignore[attr-defined]


def test_commands_exist() -> None:
    from benchmark.cli.app import app

    listed = CliRunner().invoke(app, ["--help"]).stdout
    known = set(re.findall(r"^│ (\w+) ", listed, re.M))
    used = {line.split()[1] for page in PAGES for line in commands(page)}
    assert {"run", "table"} <= known
    assert {word for word in used if word.isalpha() and word.islower()} <= known
    assert len(README.read_text().splitlines()) < 150


@pytest.mark.slow
def test_runs_can_be_planned(monkeypatch) -> None:
    """Every complete ``bench run`` of a document; the data need not be there."""
    lines = {line for page in PAGES for line in commands(page) if line.startswith("bench run ")}
    lines = {line.replace(" --data-root DIR", "") for line in lines}
    # Names in capitals or angle brackets, of the reader's own folder or method, stand for others.
    whole = [
        line
        for line in lines
        if "-p" in line
        and line == line.lower()
        and not re.search(r"\.\.\.|<|\$|photos|your-method|our-photos|cosine", line)
    ]
    assert len(whole) > 40
    monkeypatch.chdir(ROOT)
    for line in sorted(whole):
        words = [word for word in shlex.split(line)[1:] if word != "--dry-run"]
        code, out, err = call(*words, "--dry-run")
        assert code == 0 and " stages, " in out, f"{line}: {err}"


def test_commands_of_protocols() -> None:
    """A protocol with a section has a command of its own there."""
    text = (ROOT / "docs" / "protocols.md").read_text()
    for section in text.split("\n## "):
        for name in re.findall(r"<!-- docs protocol (\S+) -->", section):
            assert re.search(rf"^    bench run -p {name} -m \S+$", section, re.M), name


@every_page
def test_generated_parts_are_up_to_date(page, monkeypatch) -> None:
    """A method that is handed in comes before its card; a maintainer's `make tables` adds it."""
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    if page.name == "methods.md":
        named = set(re.findall(r"^### `(.+)`$", text, re.M))
        found = {name: file for name, file in registry.method_files().items() if name in named}
        assert len(found) == len(named) > 20
        monkeypatch.setattr(registry, "method_files", lambda: found)
    assert renew(text, kinds=("docs",)) == text, "run `make tables`"


@pytest.mark.slow
@every_page
def test_tables_are_those_of_the_committed_records(page, monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    text = page.read_text()
    if "paper-tables" in page.name:
        pytest.importorskip("open_clip")
    found = renew(text, kinds=("bench", "records", "plans"))
    if page.name == "own-vectors.md":  # estimates draw, where processors round products otherwise
        assert NUMBER.sub("#", found) == NUMBER.sub("#", text), "run `make tables`"
        numbers = [[float(x.replace(",", "")) for x in NUMBER.findall(t)] for t in (found, text)]
        np.testing.assert_allclose(*numbers, rtol=0.03, atol=0.5)
    else:
        assert found == text, "run `make tables`"


def test_the_readmes_first_two_screens_answer_five_questions() -> None:
    """Sixty lines: what it is, a command for each reader, the table, the time, the next step."""
    text = "\n".join(README.read_text().splitlines()[:60])
    doors = re.findall(r"^\| \*\*I (?:read|have vectors|train)\*\*.*$", text, re.M)
    assert len(doors) == 3
    for door in doors:
        _, _, command, prints, takes, _ = (cell.strip() for cell in door.split("|"))
        assert re.match(r"`(bench|make) .+`$", command) and prints
        assert re.fullmatch(r"seconds|a minute|minutes", takes)
    assert "\nNext: " in text and "0 % is the old model, 100 % the new one" in text
    shown = [f"`{method}`" for method in ("bct", "mixbct", "linear", "fct", "fastfill")]
    prose = GENERATED.sub("", text)
    assert all(name in text and name in prose for name in shown), "a term without its plain words"
    assert {"board.png", "upgrade.png"} <= set(
        re.findall(r"docs/figures/(\S+?)\)", README.read_text())
    )


def test_no_sentence_of_the_readme_comes_twice() -> None:
    text = re.sub(
        r"```.*?```|^ {4,}[^\n]*$", "", GENERATED.sub("", README.read_text()), flags=re.S | re.M
    )
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=[.:?])\s|\|", text)]
    long = [each for each in sentences if len(each.split()) > 4]
    assert len(long) > 30 and len(set(long)) == len(long)


@every_page
def test_links_lead_somewhere(page) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{page}: {link}"
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads}
            assert anchor in slugs, f"{page}: {link}"


@every_page
def test_no_score_is_typed(page) -> None:
    """Scores are printed by commands: outside of generated parts and code there is none."""
    text = GENERATED.sub("", page.read_text())
    prose = re.sub(r"```.*?```|`[^`]*`|^ {4,}.*$", "", text, flags=re.S | re.M)
    assert re.findall(r"±\s*\d|\b\d\d\.\d|\d\.\d+ (?:points|%)", prose) == []


def test_short_documents() -> None:
    longest = {"README.md": 200, "protocols/README.md": 150, "results/README.md": 100}
    lines = {name: len((ROOT / name).read_text().splitlines()) for name in longest}
    assert {name: n for name, n in lines.items() if n > longest[name]} == {}


def test_tables_of_settings_are_of_one_version_of_their_track() -> None:
    """The old model is one wherever a track is as it is: another score is another version's.

    Precision and processor move it by less than 3 points.
    """
    found: dict[str, list[float]] = {}
    blocks = re.findall(
        r"((?:^    bench run [^\n]+\n)+)\n<!-- docs \w+ ([^\n]+?) -->",
        (ROOT / "docs" / "settings.md").read_text(), re.M,
    )  # fmt: skip
    for lines, names in blocks:
        track = re.search(r" -t (\S+)", lines)
        if "-p extended-class" not in lines or "old.dim" in lines:
            continue
        for name in names.split():
            with (ROOT / "docs" / "figures" / name).open() as file:
                rows = list(csv.DictReader(file))
            found.setdefault(track[1] if track else "glyphs", []).append(next(
                float(row["value"]) for row in rows
                if (row["metric"], row["case"]) == ("cmc_at_1", "old/old")
            ))  # fmt: skip
    assert {name: len(values) > 4 for name, values in found.items()} == {
        "glyphs": True, "cifar100-small": True,
    }  # fmt: skip
    assert all(max(values) - min(values) < 0.03 for values in found.values())


def test_figures_are_shown() -> None:
    text = "".join(page.read_text() for page in PAGES)
    figures = {path.name for path in (ROOT / "results" / "figures").iterdir()}
    assert {name for name in figures if name not in text} == set()


def test_contributing_needs_few_files() -> None:
    """Fifteen tasks; at most three files to read and two to touch, all of which exist."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \| (.+?) \|", text, re.M)
    assert len(rows) == 15
    for task, *cells in rows:
        for cell, most in zip(cells, (3, 2), strict=True):
            paths = re.findall(r"`([\w./<>+-]+/[\w./<>+-]+)`", cell)
            assert 1 <= len(paths) <= most, task
            missing = [p for p in paths if "<" not in p and not (ROOT / p).exists()]
            assert missing == [], task


def test_contributing_names_what_adapters_build_on() -> None:
    (named,) = re.findall(
        r"An adapter imports torch,.+?\n\n", (ROOT / "CONTRIBUTING.md").read_text(), re.S
    )
    code = "".join(path.read_text() for path in (ROOT / "methods").glob("*.py"))
    used = set(re.findall(r"benchmark\.(?:models|training)\.(\w+)", code))
    assert used and used <= set(re.findall(r"`(\w+)`", named))


def test_make_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert {"run", "install", "test", "lint", "format", "site", "tables"} <= targets
    result = subprocess.run(
        ["make", "-n", "run"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    called = "bench run --methods bct,fct,mixbct --protocol open-class --track grocery-short"
    assert called in result.stdout and called in (ROOT / "README.md").read_text()
    assert sys.version_info >= (3, 11)
