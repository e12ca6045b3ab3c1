import re
from html.parser import HTMLParser

import pytest

import leaderboard
from benchmark.errors import BenchError

VOID = {"meta", "img", "br", "link"}


class Nesting(HTMLParser):
    """Checks that tags close in order; collects addresses, ids and cells."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.ids, self.cells = [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.addresses += [found[k] for k in ("href", "src") if k in found]
        self.ids += [found["id"]] if "id" in found else []
        assert tag != "script"
        assert tag != "img" or found["alt"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1] += data


@pytest.fixture
def read():
    def parse(page):
        parser = Nesting()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.open == []
        return parser

    return parse


def test_the_same_records_give_the_same_bytes(make, tmp_path):
    records = [make("independent", 0.01, 0.9), make("bct"), make("l2", seed=1)]
    for name in "ab":
        leaderboard.build(records if name == "a" else records[::-1], tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) == 5  # page, CSV, three plots
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_page_stands_alone_and_is_well_formed(make, tmp_path, read):
    page = leaderboard.build([make(), make(track="omniglot")], tmp_path)
    found = read(page)
    assert page == tmp_path / "index.html"
    assert not re.search(r"(https?:)?//[a-z]", page.read_text())
    assert len(set(found.ids)) == len(found.ids) == 2
    for address in found.addresses:
        if address.startswith("#"):
            assert address[1:] in found.ids
        else:
            assert (tmp_path / address).is_file()


def test_numbers_are_the_tables(make, tmp_path, read):
    cells = read(leaderboard.build([make("bct", 0.614, 0.8)], tmp_path)).cells
    assert "61.4 ±2.0" in cells
    assert "yes" in cells


def test_markup_in_records_is_escaped(make, tmp_path, read):
    nasty = "<script>alert(1)</script>&\"'"
    records = [
        make(nasty), make("lwf", reason=nasty), make("l2", changed={nasty: nasty}),
        make("x", protocol="a b&c", track="<t>", environment={"cpu": nasty}),
    ]  # fmt: skip
    page = leaderboard.build(records, tmp_path, plots=[])
    read(page)
    assert "<script" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


def test_page_says_what_a_reader_must_know(make, tmp_path):
    records = [make("bct", seed=s) for s in (0, 1)] + [make("lwf", reason="no old head")]
    text = leaderboard.build(records, tmp_path, plots=[]).read_text()
    assert "rendered, not collected" in text
    assert "not applicable: no old head" in text
    assert "bench run --methods bct,lwf --protocol open-class --track glyphs --seeds 0,1" in text
    assert "2025-01-02" in text
    assert "with local changes" in text


def test_plots_that_are_there_already_are_linked(make, tmp_path, read):
    drawn = tmp_path / "plots" / "open-class-glyphs-bars-cmc_at_1.svg"
    drawn.parent.mkdir()
    drawn.write_text("<svg/>")
    page = leaderboard.build([make()], tmp_path / "site", plots=[drawn])
    assert "../plots/open-class-glyphs-bars-cmc_at_1.svg" in read(page).addresses
    assert not (tmp_path / "site" / "plots").exists()


def test_no_records_are_an_error(tmp_path):
    with pytest.raises(BenchError, match="at least one record"):
        leaderboard.build([], tmp_path)
