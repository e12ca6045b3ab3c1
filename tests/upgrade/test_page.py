"""The page: one file that asks nobody for anything, in which texts of others are text."""

import copy
import json
import re
import shutil

import html5lib
import pytest

from benchmark.upgrade.show.page import render
from benchmark.upgrade.show.tables import tables

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[2J\u202e\"'"


def estimate(value):
    return {"value": value, "low": value - 0.02, "high": value + 0.02}


def strategy(name, score, **changes):
    cost = {
        "hours": 1.5, "money": 3.0, "index_bytes": 1e9, "runs": 1, "money_per_1000_queries": 0.0,
        "rebuild": True, "way_back": False,
    }  # fmt: skip
    return {
        "name": name, "title": f"the way of {name}", "effort": 0, "needs": [], "missing": [],
        "estimated": name == "re-embed", "score": estimate(score), "kept": estimate(score),
        "metrics": {"ndcg_at_10": estimate(score), "agreement_at_10": estimate(score)},
        "to_keep": None, "broken": 3, "fixed": 4, "cost": cost, "fit_s": None, "rows_per_s": None,
    } | changes  # fmt: skip


@pytest.fixture
def document():
    """With a text of an attacker wherever the user's files have a text."""
    points = [{"pairs": n, **estimate(0.6)} for n in (500, 1000, 1800)]
    filled = [{"filled": p / 10, **estimate(0.5 + p / 50)} for p in range(11)]
    names = ("keep-old", "linear", "re-embed", "slerp", "cascade", "rrf", "midpoint", "naive")
    names += tuple(f"map-{k}" for k in range(14))
    strategies = [strategy(name, 0.5 + 0.01 * k) for k, name in enumerate(names)]
    strategies[4]["missing"] = ["rescoring"]
    queries = [
        {"id": f"{k} {EVIL}", "text": EVIL, "before": 1.0, "after": 0.1, "item": EVIL,
         "rank_before": 1, "rank_after": 0}
        for k in range(20)
    ]  # fmt: skip
    return {
        "format": 1, "version": "0.1.0", "date": "2026-01-01", "metric": "ndcg_at_10",
        "inputs": {
            "gallery": EVIL, "rows": 100, "dims": [8, 16], "embedded": 50, "fitted": 30,
            "held": 20, "judged_in": 100, "queries": 30, "judged_queries": 25, "pairs": 30,
            "judged_pairs": 25, "judge": "qrels", "distance": "cosine", "complete": False,
            "old_queries": True, "slerp_shares": [0.5, 0.6], "told": [EVIL],
        },
        "constraints": {}, "wanted": 0.9,
        "assumed": {"items": 40_000_000, "throughput": 200.0, "price": 2.0, "number_bytes": 4},
        "verdict": {
            "strategy": "linear", "reason": "it keeps enough",
            "share_of": "the upgrade", "runner_up": "re-embed",
            "changes": [{"if": "if the items were not kept", "strategy": "keep-old"}],
        },
        "strategies": strategies, "left_out": {"truncate": EVIL},
        "pairs": {
            "map": "linear", "enough": 1000, "points": points,
            "bounds": {"keep-old": estimate(0.5), "re-embed": estimate(0.9)},
        },
        "backfilling": [
            {"order": "reads", "start": "linear", "points": filled,
             "worst": {"filled": 0.0, **estimate(0.5)}}
        ],
        "index": None,
        "worst": {"strategy": "linear", "against": "keep-old", "queries": queries},
    }  # fmt: skip


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
    few |= {"pairs": None, "backfilling": [], "metric": "agreement_at_10"}
    few["strategies"] = [strategy("naive", 0.2, kept=None, broken=None, fixed=None),
                         strategy("re-embed", 1.0, kept=None)]  # fmt: skip
    few["inputs"] |= {"judge": "agreement", "complete": True}
    few["verdict"] |= {"strategy": None, "reason": "nothing", "runner_up": None, "changes": []}
    few["worst"] = {"strategy": "re-embed", "against": "re-embed", "queries": []}
    assert "Nothing can be done" in render(few)
    assert len(tables(few)) == 4


def test_the_terminal_says_the_same(document):
    from benchmark.report.renderers.terminal import plain

    shown = plain(tables(document))
    assert "\x1b" not in shown and "\u202e" not in shown
    assert "The way of linear (linear)" in shown and "if items may be" not in shown
    assert json.loads(json.dumps(document)) == document
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.slow
def test_it_prints_on_two_pages(with_index, tmp_path):
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no chromium")
    file = tmp_path / "upgrade.html"
    document = with_index
    document["worst"]["queries"] = [
        q | {"id": str(k), "text": "a query of some words", "item": f"item {k}"}
        for k, q in enumerate(document["worst"]["queries"])
    ]
    file.write_text(render(document))
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 400, "height": 800})
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert asked == [file.as_uri()]
    printed = (tmp_path / "page.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) == 2


@pytest.fixture
def with_index(document):
    """Two maps: one that the old index outlives, one that it does not."""
    row = {"exact": estimate(0.6), "score": estimate(0.55), "lost": estimate(0.05), "seconds": 0.0}
    rows = [
        {"strategy": name, "index": index, "found": estimate(found), **row}
        for name, index, found in [
            ("keep-old", "as it is", 0.98), ("linear", "kept", 0.7), ("linear", "built anew", 0.97),
            ("map-1", "kept", 0.97), ("map-1", "built anew", 0.97),
        ]
    ]  # fmt: skip
    document["index"] = {
        "settings": {"kind": "hnsw"}, "items": 1000, "rows": rows,
        "build_anew": {"linear": {"needed": True}, "map-1": {"needed": False}},
        "left_out": ["rrf", "re-embed"],
    }  # fmt: skip
    return document


def test_an_index_and_all_metrics(with_index):
    from benchmark.report.renderers.terminal import plain

    page, shown = render(with_index), " ".join(plain(tables(with_index)).split())
    for said in (
        "Build the index anew after: linear; kept, it finds less.",
        "The old links or lists serve on after: map-1;",
        "Not judged so: rrf, re-embed",
    ):
        assert said in page and said in shown
    assert "All metrics" in page and "nDCG@10 agree@10" in shown.replace("Agreement@10", "agree@10")
