"""Verbs that write: what is read stays as it is, by its own name and through links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.command import call
from support.records import make_record
from support.upgrades import planted
from support.vector_files import write

from benchmark.config import places
from benchmark.records.files import write_record

INPUTS = {
    "--old-gallery": "old.npy", "--new-gallery": "new.npy", "--queries": "qn.npy",
    "--old-queries": "qo.npy", "--qrels": "q.qrels", "--query-texts": "texts.tsv",
    "--reads": "reads.tsv",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("places")
    made = planted(n=200, q=20, dim=8)
    names = np.array([f"item-{k}" for k in range(200)])
    write(root / "old.npy", made.old, names)
    write(root / "new.npy", made.new, names)
    np.save(root / "qn.npy", made.queries)
    np.save(root / "qo.npy", made.old_queries)
    lines = [f"{q} 0 {names[row]} 1\n" for q, row in enumerate(made.relevant)]
    (root / "q.qrels").write_text("".join(lines))
    (root / "texts.tsv").write_text("".join(f"{q}\tquery {q}\n" for q in range(20)))
    (root / "reads.tsv").write_text("".join(f"{name}\t1\n" for name in names))
    return root


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; a link by where it points."""
    return {
        str(path.relative_to(folder)): str(path.readlink()).encode() if path.is_symlink()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or path.is_file()
    }  # fmt: skip


def write_records(root: Path) -> None:
    for method in ("independent", "l2"):
        record = make_record(method)
        write_record(record.path(root), record)


def refused(said: str, *words: object) -> None:
    code, _, err = call(*words)
    assert code == 2 and err.count("\n") == 1, err
    assert said in err, err


def words(folder: Path) -> list[object]:
    options = ((option, folder / name) for option, name in INPUTS.items())
    return ["upgrade", *(word for pair in options for word in pair), "--maps", "quick"]


@pytest.mark.parametrize("how", ["itself", "symbolic", "hard"])
@pytest.mark.parametrize("option", ["--json", "--report", "--save-map"])
def test_the_report_leaves_its_inputs(folder, tmp_path, option, how):
    before = contents(folder)
    for name in (*INPUTS.values(), "old.npy.ids.npy", "new.npy.ids.npy"):
        place = folder / name
        if how == "symbolic":
            place = tmp_path / f"{name}.link"
            place.symlink_to(folder / name)
        elif how == "hard":
            place = tmp_path / f"{name}.hard"
            place.hardlink_to(folder / name)
        refused(f"{option}: expected another file than is read", *words(folder), option, place)
    assert contents(folder) == before


def test_the_report_takes_no_place_twice_and_none_in_a_folder_that_is_read(folder, tmp_path):
    page = tmp_path / "x.html"
    refused("--json: expected another file than --report", *words(folder), "--report", page,
            "--json", page)  # fmt: skip
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts" / "a.parquet", np.ones((200, 8), np.float32))
    given = words(folder)
    given[2] = tmp_path / "parts"
    refused("outside of the folder that is read", *given, "--json", tmp_path / "parts" / "a.json")
    member = tmp_path / "member.html"
    member.hardlink_to(tmp_path / "parts" / "a.parquet")
    refused("expected another file than is read", *given, "--report", member, "--json", page)
    kept = tmp_path / "kept.map"
    kept.mkdir()
    (kept / "conversion.json").touch()
    (kept / "mine.txt").touch()
    refused("there is more than a conversion: mine.txt", *words(folder), "--save-map", kept)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kept.map", "member.html", "parts"]


@pytest.mark.parametrize("option", ["--json", "--report"])
@pytest.mark.parametrize("place", [".", "/", "", "/dev/null"])
def test_what_is_no_file_is_told_before_the_work(folder, tmp_path, monkeypatch, option, place):
    monkeypatch.chdir(tmp_path)
    told = f"{option}: expected a {'file, got ' if place else 'value, got none'}"
    refused(told, *words(folder), option, place)
    if option == "--json":
        refused(told, "perf", "ranking", option, place)
    assert not list(tmp_path.iterdir()) and Path("/dev/null").is_char_device()


def test_a_conversion_leaves_what_it_reads(folder, tmp_path):
    """Its own folder, vectors and their ids, a folder of such files; through links, too."""
    from benchmark import get_method

    saved, parts = tmp_path / "conversion", tmp_path / "parts"
    old = np.load(folder / "old.npy")
    get_method("linear").fit(old, np.load(folder / "new.npy"), distance="cosine").save(saved)
    parts.mkdir()
    write(parts / "a.parquet", old)
    before = contents(saved) | contents(parts) | contents(folder)
    module = next(path for path in saved.iterdir() if path.suffix == ".safetensors")
    sources = {folder / "old.npy": ("old.npy", "old.npy.ids.npy"), parts: ("a.parquet",)}
    for source, names in sources.items():
        own = [(parts if source == parts else folder) / name for name in names]
        for number, read in enumerate((module, saved / "conversion.json", *own)):
            links = [tmp_path / f"{kind}-{number}{read.suffix}" for kind in ("soft", "hard")]
            links[0].symlink_to(read)
            links[1].hardlink_to(read)
            for place in (read, *links):
                refused("expected ", "convert", saved, source, place, "--force")
                assert contents(saved) | contents(parts) | contents(folder) == before
            for link in links:
                link.unlink()
    refused("outside of the folder that is read", "convert", saved, folder / "old.npy",
            saved / "new.npy", "--force")  # fmt: skip


def test_the_site_leaves_records_and_pages_of_others(tmp_path):
    runs = tmp_path / "runs"
    write_records(runs)
    before = contents(runs)
    own = tmp_path / "own"
    own.mkdir()
    (own / "index.html").write_text("mine")
    refused("expected an empty folder or an earlier site", "leaderboard", runs, "--out", own)
    assert contents(own) == {"index.html": b"mine"}
    site = tmp_path / "site"
    assert call("leaderboard", runs, "--out", site)[0] == 0
    record = next(path for path in runs.rglob("seed-0.json"))
    for name, link in (("methods.html", "symlink_to"), ("index.html", "hardlink_to")):
        (site / name).unlink()
        getattr(site / name, link)(record)
    assert call("leaderboard", runs, "--out", site)[0] == 0
    assert contents(runs) == before
    moved = site / "records" / "mine"
    write_records(moved)
    refused("expected a folder outside of", "leaderboard", moved, "--out", site)
    assert list(moved.rglob("seed-0.json"))


def test_tables_in_files_leave_records_and_rules(tmp_path):
    root = tmp_path / "runs"
    write_records(root)
    record = next(path for path in root.rglob("seed-0.json"))
    out = tmp_path / "out"
    out.mkdir()
    (out / "transfer.json").symlink_to(record)
    before = contents(tmp_path)
    refused("--out: expected another file than is read", "transfer", root, "--out", out)
    assert contents(tmp_path) == before


def test_a_run_writes_nothing_among_the_images(tmp_path):
    images = tmp_path / "photos"
    for name in "abcdefgh":
        (images / name).mkdir(parents=True)
        for i in range(4):
            Image.new("L", (20, 20), 30 * i).save(images / name / f"{i}.png")
    (tmp_path / "link").symlink_to(images)
    run = ("run", "-m", "bct", "-p", "open-class", "-t", "folder", "--data-root", images,
           "--device", "cpu", "--dry-run")  # fmt: skip
    for option, place in (
        ("--out", images), ("--out", images / "runs"), ("--store", images / "store"),
        ("--out", tmp_path / "link" / "x"),
    ):  # fmt: skip
        refused(f"{option}: expected a folder outside of", *run, option, place)
    refused("--out: expected a folder outside of", "results", "run", "--dry-run", "--out", images,
            "--data-root", f"omniglot={images}")  # fmt: skip
    assert len(list(images.iterdir())) == 8


def test_a_link_to_itself_is_a_place_like_another(tmp_path):
    """pathlib raises RuntimeError of one; what cannot be read is told where it is read."""
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert places.real(loop) == loop
    places.require_outside({"--out": loop}, [tmp_path / "other"])
