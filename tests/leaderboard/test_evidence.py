"""The page of evidence: there where something can be told, linked, escaped."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest
from support.stored import stored

from benchmark.errors import BenchError
from benchmark.records import published
from benchmark.records.details_files import details_path
from benchmark.records.files import write_record
from benchmark.studies.claims import read_claims
from benchmark.studies.claims.tables import STATUSES
from leaderboard.site import build_folder


@pytest.fixture
def site(make, tmp_path):
    """Build a site of records."""

    def built(records):
        for record in records:
            write_record(record.path(tmp_path / "runs"), record)
        build_folder(tmp_path / "runs", tmp_path / "site")
        return tmp_path / "site"

    return built


def board(make, track, dataset, n, protocol="open-class", **methods):
    about = {"name": dataset, "fingerprint": "f"}
    return [
        make(m, score + 0.002 * s, seed=s, track=track, dataset=about, protocol=protocol)
        for m, score in methods.items()
        for s in range(n)
    ]


SCORES = {"bct": 0.6, "l2": 0.7, "fct": 0.8, "mixbct": 0.55, "bt2": 0.85}
TURNED = {method: 1.4 - score for method, score in SCORES.items()}


def test_failures_are_shown_and_rendered_boards_link(make, site) -> None:
    records = board(make, "glyphs", "glyphs", 3, **SCORES)
    records += board(make, "cifar100-small", "cifar100", 3, **TURNED)
    out = site(records)
    page = (out / "evidence.html").read_text()
    assert "does not transfer" in page and "cifar100-small and glyphs" in page
    assert "Holds on photographs" in page and "bt2-" in page
    first = (out / "index.html").read_text()
    where = [first.index(heading) for heading in STATUSES.values()]
    assert where == sorted(where) and where[-1] < first.index('id="kept"')
    for heading in STATUSES.values():
        (n,) = re.findall(rf">{heading} \((\d+)\)", page)
        assert f">{heading}</a>: {n}<" in first
    # The counts come before everything else, what fails beside what holds.
    counts = re.search(r'<p class="counts">.*?</p>', first, re.S)[0]
    assert counts.count("<a href") == len(STATUSES) and first.index(counts) < first.index("<h2")
    for anchor in re.findall(r'href="evidence.html#([^"]+)"', first):
        assert page.count(f'id="{anchor}"') == 1
    for name in re.findall(r'<img src="([^"]+)"', page):
        assert (out / name).read_bytes().startswith(b"<?xml")
    boards = {path.name: path.read_text() for path in (out / "boards").glob("*.html")}
    linked = {name for name, text in boards.items() if "evidence.html#transfer" in text}
    assert linked and all("glyphs" in name for name in linked)


def test_what_changed_with_frozen_networks_is_told(make, site) -> None:
    records = board(make, "cifar100-small", "cifar100", 3, **SCORES)
    page = (site(records) / "evidence.html").read_text()
    assert 'id="networks"' not in page and "With small networks" in page
    page = (
        site(records + board(make, "grocery", "grocery", 3, **TURNED)) / "evidence.html"
    ).read_text()
    (section,) = re.findall(r'<section id="networks">.*?</section>', page, re.S)
    assert "1 is sure not to, and none are open (tau-b -1.00 to -1.00)" in section
    assert "mixbct rises most, by 4.0 places of 5" in section and "bt2 falls most" in section
    assert "5 of 5 (100\u00a0%) exceed old/old with small networks" in section
    assert "With frozen, pretrained networks" in page and 'href="#networks"' in page


def test_each_paper_has_a_page_of_its_claims(make, site) -> None:
    """Of bct-2: l2 is far above bct and old/old, so that penalised distances are compatible."""
    out = site(board(make, "cifar100-small", "cifar100", 3, "extended-class", **SCORES))
    claims = read_claims()
    for paper in claims.papers:
        page = (out / "claims" / f"{paper}.html").read_text()
        own = [name for name in claims.claims if name.rpartition("-")[0] == paper]
        assert own and all(f'<section id="{name}">' in page for name in own)
    page = (out / "claims" / "bct.html").read_text()
    section = re.search(r'<section id="bct-2">.*?</section>', page, re.S)[0]
    assert "fails on photographs" in section and "disagrees" in section
    assert "l2 old/old &gt; l2 new/old" in section and "-20.2 <small>±0.5</small>" in section
    for name in ("index", "evidence", "published", "published/bct"):
        assert "claims/bct.html" in (out / f"{name}.html").read_text(), name
    assert "../claims/bct.html#bct-2" in (out / "methods" / "l2.html").read_text()
    assert "../claims/bct.html#bct-2" not in (out / "methods" / "fct.html").read_text()


def test_lengths_of_training_are_shown_where_a_study_is(make, site, tmp_path) -> None:
    """A study's records are on no board, and stand beside those of the usual length."""
    n = 80
    for place, changed in (("", {}), ("studies/lengths", {"recipe.length": 2})):
        for method, share in {"independent": 0.0, "bct": 0.5, "l2": 0.25}.items():
            values = {
                (case, "cmc_at_1"): (np.arange(n) < n * x).astype(float)
                for case, x in (("old/old", 0.25), ("new/old", share), ("new/new", 0.75))
            }
            folder = tmp_path / "runs" / place
            stored(folder, method, values, np.arange(n) // 8, changed=changed, track="toy")
    out = site(board(make, "glyphs", "glyphs", 3, **SCORES))
    page = (out / "evidence.html").read_text()
    assert "Length of training" in page and "length 2" in page
    assert 'src="assets/figures/lengths-' in page
    assert "recipe.length" not in (out / "boards.html").read_text()
    build_folder(tmp_path / "runs" / "measured", tmp_path / "beside")  # as of the committed ones
    assert "length 2" in (tmp_path / "beside" / "evidence.html").read_text()


def test_what_is_damaged_of_a_study_is_told(make, site, tmp_path) -> None:
    """Half a study has another outcome than the whole, and looks the same."""
    site(board(make, "glyphs", "glyphs", 3, **SCORES))
    lost = tmp_path / "runs" / "studies" / "claims" / "seed-0.json"
    lost.parent.mkdir(parents=True)
    lost.write_text("{")
    for place, changed in (("", {}), ("studies/lengths", {"recipe.length": 2})):
        for method, share in {"independent": 0.0, "bct": 0.5}.items():
            values = {
                (case, "cmc_at_1"): np.full(20, x)
                for case, x in (("old/old", 0.25), ("new/old", share), ("new/new", 0.75))
            }
            study = stored(
                tmp_path / "runs" / place, method, values, np.arange(20), changed=changed,
                track="toy",
            )  # fmt: skip
    details_path(study.path).write_bytes(b"no gzip")
    _, skipped = build_folder(tmp_path / "runs", tmp_path / "site")
    files = [each.file for each in skipped]
    assert "studies/claims/seed-0.json" in files
    assert any(file.startswith("studies/lengths/") for file in files)
    page = (tmp_path / "site" / "skipped.html").read_text()
    assert "studies/claims/seed-0.json" in page


def test_damaged_published_numbers_are_not_none(make, tmp_path, monkeypatch) -> None:
    write_record((record := make("bct")).path(tmp_path / "runs"), record)
    shutil.copytree(published.default_folder(), folder := tmp_path / "results" / "published")
    csv = next(iter(sorted(folder.glob("*.csv"))))
    csv.write_text(csv.read_text() + "half a line")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BenchError, match=csv.name):
        build_folder("runs", "site")
    monkeypatch.setattr(published, "WORDS", "no such file")
    build_folder("runs", "site")
    assert (tmp_path / "site" / "published.html").is_file()


def test_one_seed_tells_nothing_and_has_no_page(make, site) -> None:
    out = site(board(make, "glyphs", "glyphs", 1, **SCORES))
    assert not (out / "evidence.html").exists()
    assert "evidence.html" not in (out / "index.html").read_text()
