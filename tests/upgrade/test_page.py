"""The page: one file that asks nobody for anything, in which texts of others are text."""

import copy
import importlib.util
import json
import re

import html5lib
import pytest
from support.upgrades import planted

import benchmark
from benchmark.report.renderers.terminal import plain
from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.tables import tables

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e\"'"


@pytest.fixture(scope="module")
def report():
    """Of a planted upgrade, with orders of backfilling, and an index where faiss is there."""
    made = planted(n=500, q=80, dim=8)
    given = made.arguments(made.sample(300)) | {"maps": "procrustes,linear", "wanted": 0.2}
    has_faiss = importlib.util.find_spec("faiss") is not None
    return benchmark.upgrade(
        **given, approximate="hnsw" if has_faiss else None, extra_runs=False
    ).document


@pytest.fixture
def document(report):
    """With a text of an attacker wherever the user's files have a text."""
    found = copy.deepcopy(report)
    found["inputs"] |= {"gallery": EVIL, "told": [EVIL]}
    found["left_out"]["truncate"] = EVIL
    queries = found["worst"]["queries"] * 20
    text = {"text": EVIL, "item": EVIL}
    found["worst"]["queries"] = [
        each | text | {"id": f"{k} {EVIL}"} for k, each in enumerate(queries[:20])
    ]
    maps = [each for each in found["strategies"] if each["name"] == "linear"]
    found["strategies"] += [maps[0] | {"name": f"map-{k}"} for k in range(12)]
    assert found["backfilling"] and found["pairs"]
    return found


def test_texts_of_others_are_text(document):
    page = render(document)
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    assert not list(tree.iter("script")) and not list(tree.iter("img"))
    assert "\x1b" not in page and "\u202e" not in page
    words = "".join(tree.itertext())
    assert words.count("<script>alert(1)</script>") > 40
    names = {name for element in tree.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on")}


def test_nothing_is_asked_of_anybody(document):
    page = render(document)
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    names = {name for element in tree.iter() for name in element.attrib}
    assert not names & {"src", "href", "action", "srcset", "data", "poster", "background"}
    assert not re.findall(r"url\(|@import|https?://", page)
    assert "default-src 'none'" in page


def test_the_page_stands_with_little(document):
    """No maps, no lower bound, no judgements, nothing that can be done."""
    few = copy.deepcopy(document)
    few |= {"pairs": None, "backfilling": [], "index": None, "metric": "agreement_at_10"}
    nothing = {"kept": None, "broken": None, "fixed": None}
    few["strategies"] = [
        each | nothing for each in few["strategies"] if each["name"] in ("naive", "re-embed")
    ]
    few["inputs"] |= {"judge": "agreement", "complete": True}
    few["verdict"] |= {"strategy": None, "reason": "nothing", "runner_up": None, "changes": []}
    few["worst"] = {"strategy": "re-embed", "against": "re-embed", "queries": []}
    assert "Nothing can be done" in render(few)
    few["verdict"]["decided"] = False
    assert "Not decided: keep the old model while it runs" in render(few)
    assert len(tables(few, every=True)) == 5 and len(tables(few)) == 2


def test_no_brackets_where_there_is_no_interval():
    """One query has a score, and nothing around it."""
    made = planted(n=300, q=4, dim=8)
    only = {1: {int(made.relevant[1]): 1.0}}
    report = benchmark.upgrade(**made.whole(qrels=only, threshold=(0.5,), compressed=True))
    words = plain(tables(report.document, every=True)) + render(report.document)
    assert report.document["strategies"][0]["score"]["low"] is None
    assert "()" not in words and "points; 2 are worthwhile" in words


def test_every_cell_of_a_narrow_page_has_its_head(tmp_path):
    """Rows are cards there, and heads are not shown: a number alone says nothing."""
    made = planted(n=300, q=40, dim=8)
    (tmp_path / "slices.tsv").write_text("1\ta\n2\tb\n")
    found = benchmark.upgrade(
        **made.arguments(made.sample(250)), transition=True, compressed=True,
        threshold=(0.3,), slices=tmp_path / "slices.tsv",
    ).document  # fmt: skip
    tree = html5lib.parse(render(found), namespaceHTMLElements=False)
    cards = [each for each in tree.iter("table") if "cards" in (each.get("class") or "")]
    assert len(cards) == 5
    heads = {cell.get("data-head") for table in cards for cell in table.iter("td")
             if "wide" not in (cell.get("class") or "")}  # fmt: skip
    assert None not in heads and {"depth", "as", "keeps the"} <= heads


def test_the_terminal_says_the_same(document):
    shown = plain(tables(document, every=True))
    assert "\x1b" not in shown and "\u202e" not in shown
    chosen = document["verdict"]["strategy"]
    assert chosen in ("linear", "procrustes") and f"Convert stored vectors ({chosen})" in shown
    assert json.loads(json.dumps(document)) == document
    assert max(map(len, shown.splitlines())) <= 100


@pytest.fixture
def page_file(document, tmp_path):
    """The report's page, with names of usual length."""
    document["inputs"] |= {"gallery": "old.parquet", "told": []}
    document["left_out"]["truncate"] = "vectors are of equal size"
    document["worst"]["queries"] = [
        q | {"id": str(k), "text": "a query of some words", "item": f"item {k}"}
        for k, q in enumerate(document["worst"]["queries"])
    ]
    file = tmp_path / "upgrade.html"
    file.write_text(render(document))
    return file


FIRST = """() => [...document.querySelectorAll("h1, .tiles, .three section")].map(e => {
  const box = e.getBoundingClientRect();
  return [e.tagName, e.innerText.split("\\n")[0], box.right, box.bottom]; })"""
"""Parts that must be seen first: answer, numbers, and the three questions, with their ends."""
PAPER = (710, 1038)
"""Pixels of A4 within its margins of 11 mm, 96 of them an inch."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "height", "medium"), [(400, 800, "screen"), (1280, 800, "screen"), (*PAPER, "print")]
)
def test_the_three_questions_are_answered_first(width, height, medium, browser, page_file):
    page = browser.new_page(viewport={"width": width, "height": height})
    page.emulate_media(media=medium)
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = page.evaluate(FIRST)
    assert [words for tag, words, *_ in found if tag == "SECTION"] == [
        "Why", "What it costs", "What can go wrong",
    ]  # fmt: skip
    assert len(found) == 5  # the headline and its numbers, too
    for *_, right, bottom in found:
        assert 0 < right <= width and 0 < bottom <= height
    page.close()


@pytest.mark.slow
def test_it_prints_on_two_pages(browser, page_file, tmp_path):
    """Nothing is cut at the right, no row is broken, and nobody is asked for anything."""
    page = browser.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(page_file.as_uri())
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert asked == [page_file.as_uri()]
    printed = (tmp_path / "page.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) == 2
    page.set_viewport_size({"width": PAPER[0], "height": PAPER[1]})
    page.emulate_media(media="print")
    wide = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert max(page.evaluate(wide)) <= 1
    broken = "[...document.querySelectorAll('tr')].map(e => getComputedStyle(e).breakInside)"
    assert set(page.evaluate(broken)) == {"avoid"}
    page.close()


def test_what_is_not_allowed_is_marked(report):
    """One model run a query: every strategy of two says why not."""
    page, wanted = render(report), [s["name"] for s in report["strategies"] if s["missing"]]
    reason = "one model run a query, no more"
    assert wanted and all(report["left_out"][name].startswith(reason) for name in wanted)
    assert page.count(f'<span class="tag no">no</span> <small>{reason}') == len(wanted)
    assert "no: what the constraints do not allow. Dashed" in page and "Wanted: 20 % of" in page


def test_an_index_and_all_metrics(document):
    """Two maps: one that the old index outlives, one that it does not."""
    pytest.importorskip("faiss")
    document["index"]["build_anew"] = {"linear": {"needed": True}, "map-1": {"needed": False}}
    page, shown = render(document), " ".join(plain(tables(document, every=True)).split())
    for said in (
        "Build the index anew after: linear; kept, it may find less.",
        "The old links or lists serve on after: map-1;",
        "Not judged so: rrf-converted, rrf, cascade, re-embed",
    ):
        assert said in page and said in shown
    assert "All metrics" in page and "nDCG@10 Recall@1 Recall@10" in shown


def test_estimates_of_all_metrics_are_marked(document):
    """Agreement is measured: its depth is that of the whole gallery."""
    document["inputs"] |= {"nearest": 5, "agreement_at": 11}
    again = next(s for s in document["strategies"] if s["name"] == "re-embed")
    shown = " ".join(plain(tables(document, every=True)).split())
    page = " ".join(re.sub(r"<small>[^<]*</small>|<[^>]*>", " ", render(document)).split())
    values = [f"{100 * each['value']:.1f}" for each in again["metrics"].values()]
    row = " ".join([*(f"{each} est." for each in values[:-1]), values[-1]])
    assert again["estimated"] and f"re-embed {row}" in page and f"re-embed {row}" in shown
    note = "was held against the truth on real corpora."
    for words in (shown, render(document)):
        assert note in words and "Agreement@11*" in words and "Agreement@10" not in words
        assert "whose nearest 5 stand for the first 11 of all" in words
    document["inputs"]["nearest"] = 1
    document["strategies"] = [s | {"estimated": False} for s in document["strategies"]]
    shown = " ".join(plain(tables(document, every=True)).split())
    assert note not in shown and note not in render(document)
    assert "whose nearest stands for the first 11 of all" in shown


def test_notes_say_nothing_of_what_is_not_there(document):
    """No strategy is left out; none is recommended; one more is one."""
    document["strategies"] = document["strategies"][:1] * 9
    for left_out, chosen in ((True, True), (False, True), (True, False), (False, False)):
        name = document["strategies"][0]["name"]
        document["left_out"] = {name: "no"} if left_out else {}
        document["verdict"]["strategy"] = name if chosen else None
        notes = " ".join(map(str, tables(document)[1].notes))
        assert ("(no) is what" in notes) == left_out and ("* is what" in notes) == chosen
        assert ("no: what the constraints" in render(document)) == left_out


def test_no_query_is_fixed_beside_an_upgrade(document):
    """All find a relevant item among the first ten before, too."""
    for each in document["strategies"]:
        each |= {"fixed": 0, "broken": 0}
    said = "fixed / broken 0 / 0: no query loses all its relevant items among the first ten"
    assert said in " ".join(plain(tables(document)).split()) and said in render(document)
    document["inputs"]["judge"] = "labels"
    assert "no query's nearest item is relevant" in str(tables(document)[1].notes)
    for each in document["strategies"]:
        each["fixed"] = 1
    assert "0 / 0" not in str(tables(document)[1].notes)
    some = document["strategies"][:1] * 9
    document["strategies"] = [each | {"name": f"map-{k}"} for k, each in enumerate(some)]
    assert "1 strategy more" in str(tables(document)[1].notes)
