"""Ways of readers on the site of the committed records: a few clicks, one screen, the right answer.

Answers are computed again from the records, by plain formulas of their own.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.command import call
from support.ways import MAIN, RESULTS, half_filled, interval, records, shares

from benchmark.records.files import read_selection
from benchmark.studies.claims import answers, read_claims
from leaderboard.read.methods import method_info
from leaderboard.site import build_folder

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.slow  # the whole board is built

HEIGHT, MOST_CLICKS = 900, 3


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    _, skipped = build_folder(RESULTS, out)
    assert not skipped
    return out


class Reader:
    """Somebody on the first page, who clicks, then reads what the screen shows."""

    def __init__(self, browser, site):
        self.page = browser.new_page(viewport={"width": 1280, "height": HEIGHT})
        self.page.goto((site / "index.html").as_uri())
        self.clicks = 0

    def click(self, words, within="body"):
        self.page.locator(f"{within} a", has_text=words).first.click()
        self.page.wait_for_load_state()
        self.clicks += 1

    def choose(self, name, value):
        self.page.select_option(f"[name={name}]", value)
        self.clicks += 1

    def read(self, place):
        """The words of a place, all of which is on the screen."""
        found = self.page.locator(place).first
        found.wait_for()
        self.page.wait_for_timeout(200)
        box = found.bounding_box()
        assert self.clicks <= MOST_CLICKS
        assert box["y"] >= 0 and box["y"] + box["height"] <= HEIGHT, box
        return " ".join(found.inner_text().split())


@pytest.fixture
def reader(browser, site):
    made = Reader(browser, site)
    yield made
    made.page.close()


def check_shares(text, protocol, track, metric="cmc_at_1"):
    """Every share that a text tells is that of the records."""
    told = re.findall(r"(?:^|[ (])([\w:-]+) keeps (-?\d+) % ± (\d+) of the upgrade", text)
    for method, mean, half in told:
        values = [*shares(protocol, track, method, metric).values()]
        assert (int(mean), int(half)) == interval(values), method
    return {method: int(mean) for method, mean, _ in told}


@pytest.fixture(scope="module")
def commonest(site):
    """Protocol and track of the commonest upgrade, as the first page names them."""
    page = (site / "index.html").read_text(encoding="utf-8")
    return re.search(r"<code>([\w:-]+) · ([\w-]+)</code>", page).groups()


def kept(place, family):
    """Method of a family -> mean share with vectors and a training alone, controls left out."""
    of = {r.method: method_info(r.method) for r in records(*place)}
    costly = {"the old model on all queries", "side-information"}
    fit = [m for m, i in of.items() if i.ranked and i.family == family and not costly & {*i.needs}]
    return {m: np.mean([*shares(*place, m).values()]) for m in fit}


def test_a_vendor_retires_the_model(reader, commonest):
    """The map that keeps most of vectors alone; none where all are below the old model."""
    reader.click("My vendor retires a model")
    text = reader.read("#chosen")
    among = kept(commonest, "transformation")
    best = max(among, key=among.get)
    assert {"fct", "linear"} <= {*among}
    if among[best] <= 0:
        assert re.match(
            rf"Embed everything again: .*\(.*{best}.*\) are no better than the old", text
        )
    else:
        mean, half = interval([*shares(*commonest, best).values()])
        assert text.startswith(f"Take {best}: it keeps {mean} % ± {half} of the upgrade")
        assert ("it may be no better than keeping the old model" in text) == (mean <= half)
    assert "Before the switch-off embed a sample of the items and of the queries" in text
    assert "after 56 h of one machine, $111" in text  # 1e8 at 500 a second, $2


def test_who_trains_and_cannot_touch_the_index(reader, commonest):
    """No training that spares new/new keeps anything; a map would, of an index as it is."""
    reader.click("I train my own and cannot touch the index")
    text = reader.read("#chosen")
    assert text.startswith("Keep the old model: ") and "0 % of the upgrade" in text
    check_shares(text, *commonest)
    among = kept(commonest, "compatible training")
    hurting = re.search(r"Never recommended (.+?): new/new suffers", text)[1].split(", ")
    assert {"bct", "mixbct", "bt2"} <= {*among}
    assert all(among[m] <= 0 for m in {*among} - {*hurting})


def test_verification(reader):
    """Shares of the metric of 1:1, by the board with the most old models."""
    reader.click("Verification, 1:1")
    text = reader.read("#answer")
    told = check_shares(text, "ijbc-1v1", "grocery", MAIN["ijbc-1v1"])
    assert "TAR@FAR 1e-4" in text and len(told) == 2
    assert max(told, key=told.get) == text.split()[0]


def test_a_chain(reader):
    """The best chained, and what goes without the models between."""
    reader.click("A chain of updates")
    text = reader.read("#answer")
    method, value, old = re.search(
        r"Without the models between \(v3/v1 direct\) (\S+) has (\S+), the old model (\S+\d)", text
    ).groups()
    found = {}
    for r in records("sequential", "grocery"):
        if "v3/v1 direct" in r.scores and r.method != "independent":
            found.setdefault(r.method, []).append(r.scores["v3/v1 direct"]["cmc_at_1"])
    direct = {method: np.mean(values) for method, values in found.items()}
    assert max(direct, key=direct.get) == method
    assert f"{100 * direct[method]:.1f}" == value
    lower = [r.bounds["lower"]["cmc_at_1"] for r in records("sequential", "grocery", method)]
    assert len(lower) == 10 and f"{100 * np.mean(lower):.1f}" == old
    chained = [
        (r.scores["v3/v1"]["cmc_at_1"] - r.bounds["lower"]["cmc_at_1"])
        / (r.bounds["upper"]["cmc_at_1"] - r.bounds["lower"]["cmc_at_1"])
        for r in records("sequential", "grocery", text.split()[0])
    ]
    assert "keeps {} % ± {} of the upgrade".format(*interval(chained)) in text


def test_half_refilled(reader):
    reader.click("Half of the gallery is backfilled")
    text = reader.read("#answer")
    method, value, without = re.search(
        r"Half of the gallery backfilled: (\S+) has CMC@1 (\S+); no method in random order (\S+\d)",
        text,
    ).groups()
    assert f"{100 * half_filled(method):.1f}" == value
    assert f"{100 * half_filled('independent'):.1f}" == without
    assert all(half_filled(m) <= half_filled(method) for m in ("bct", "fct", "fastfill"))


def test_bct_or_mixbct_and_how_sure(reader):
    reader.click("This method or that one, and how sure", ".questions")
    reader.choose("a", "bct")
    reader.choose("b", "mixbct")
    assert re.match(
        r"Of \d+ boards bct keeps more on \d+, mixbct on \d+", reader.read("#both .answer")
    )
    row = "#both tr:has(a[href='boards/extended-class-cifar100-small.html'])"
    text = reader.read(row)
    bct, mixbct = (shares("extended-class", "cifar100-small", m) for m in ("bct", "mixbct"))
    both = ["{} % ± {}".format(*interval([*of.values()])) for of in (bct, mixbct)]
    assert " ".join(both) in text
    margins = [bct[seed] - mixbct[seed] for seed in bct]
    mean, half = np.mean(margins), stats.sem(margins) * stats.t.ppf(0.975, len(margins) - 1)
    low, mid, high = (f"{100 * v:+.0f}" for v in (mean - half, mean, mean + half))
    assert f"{mid} ({low} to {high})" in text
    assert text.endswith("bct" if mean > half else "cannot be told")


def test_whether_it_holds_beyond_small_pictures(reader):
    reader.click("Does it hold beyond small pictures")
    text = reader.read("#answer")
    _, out, _ = call("pairs", "table", RESULTS / "pairs", "--show", "claims", "-f", "csv")
    verdicts = [line.rpartition(",")[2] for line in out.splitlines() if line.startswith("real-")]
    agree, disagree = verdicts.count("agree"), verdicts.count("disagree")
    assert agree + disagree > 10
    assert f"agree with {agree} of {len(verdicts)} sentences on real models" in text
    assert f"and disagree with {disagree}" in text


def test_no_board_says_that_nothing_helps_where_something_does(site):
    """By means over the seeds, no method of a board that says so is above the old model."""
    said = 0
    for page in sorted((site / "boards").glob("*.html")):
        text = page.read_text(encoding="utf-8")
        if "o method that was measured here is better than doing without any." not in text:
            continue
        protocol, track = re.search(r"<code>([\w:-]+) · ([\w-]+)</code>", text).groups()
        gains = {}
        for r in records(protocol, track):
            old, *_, new = r.models
            case, metric = f"{new}/{old}", MAIN.get(protocol, "cmc_at_1")
            if metric in r.scores.get(case, {}) and method_info(r.method).ranked:
                gain = r.scores[case][metric] - r.bounds["lower"][metric]
                gains.setdefault(r.method, []).append(gain)
        assert gains and all(np.mean(own) <= 0 for own in gains.values()), page.name
        said += 1
    assert said > 10


def test_what_became_of_fastfills_claims(reader):
    reader.click("FastFill", "#told ~ p")
    text = reader.read("#answer")
    claims = read_claims()
    own = {name: c for name, c in claims.claims.items() if name.startswith("fastfill-")}
    measured = [each.record for each in read_selection([RESULTS / "measured"])]
    found = [a.status for a in answers(claims.model_copy(update={"claims": own}), measured)]
    assert f"{len(own)} claims: " in text
    assert re.search(rf"\b{found.count('fails')} fails? on photographs", text)
    assert re.search(rf"\b{found.count('open')} (is|are) open", text)


def test_no_page_is_cut_overlaid_or_too_long(browser, site):
    """Every page but those of records, from a phone to a desk; dark is as light but for colours."""
    layout = (Path(__file__).parent / "layout.js").read_text(encoding="utf-8")
    pages = [p for p in sorted(site.rglob("*.html")) if p.relative_to(site).parts[0] != "records"]
    assert len(pages) > 100
    page, found = browser.new_page(viewport={"width": 1280, "height": HEIGHT}), {}
    for i, file in enumerate(pages):
        page.emulate_media(color_scheme=("light", "dark")[i % 2])
        page.set_viewport_size({"width": 1280, "height": HEIGHT})
        page.goto(file.as_uri())
        if page.locator("script[src$='kit.js']").count():
            page.wait_for_selector("html[data-drawn=all]", state="attached")
        for width in (1280, 1024, 768, 400):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            page.wait_for_timeout(30)
            faults = page.evaluate(layout)
            if faults:  # a busy machine draws later
                page.wait_for_timeout(2000)
                faults = page.evaluate(layout)
            if faults:
                found[f"{file.relative_to(site)} at {width}"] = faults[:3]
    page.close()
    assert found == {}
