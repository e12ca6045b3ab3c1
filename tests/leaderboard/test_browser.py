"""The site in a real browser: sorting, filters, hovering, colours, a phone, keyboard, downloads."""

import json
from pathlib import Path

import pytest
from support.records import make_record
from support.sites import sample, write

from benchmark.metrics.cost_model import Assumptions
from benchmark.report.costs import bill_words
from leaderboard.site import build_folder, freeze

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

LAYOUT = Path(__file__).parent / "layout.js"
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
KINDS = (
    "index", "boards", "methods", "compare", "published", "submit", "changes", "skipped",
    "evidence",
    "boards/open-class-glyphs", "boards/open-data-glyphs",
    "boards/extended-class-glyphs", "boards/loss-change-glyphs",
    "boards/backfill-glyphs", "boards/sequential-glyphs", "boards/ijbc-1v1-glyphs",
    "methods/mixbct", "methods/fct", "published/fct", "claims/fct", "own-vectors",
    "releases/0.1.0",
    "records/open-class-glyphs/fct", "records/backfill-glyphs/fct",
    "records/extended-data-glyphs/fct",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """With a release, since which methods came and moved."""
    records, releases = sample(), tmp_path_factory.mktemp("releases")
    before = [r for r in records if r.protocol != "extended-class" or r.method != "bct"]
    freeze(write(before, tmp_path_factory.mktemp("before")), "0.1.0", releases)
    out = tmp_path_factory.mktemp("out")
    build_folder(write(records, tmp_path_factory.mktemp("records")), out, releases)
    return out


@pytest.fixture
def visit(browser, site):
    """Open a page; at the end nothing was asked of a host and nothing went wrong."""
    wrong, contexts = [], []

    def open_page(name, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # a busy machine is slow, not wrong
        page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith(("file:", "blob:", "data:")) else wrong.append(r.url)
            ),
        )
        page.goto((site / f"{name}.html").as_uri())
        scripts = options.get("java_script_enabled", True)
        if scripts and page.locator("script[src$='kit.js']").count():
            page.wait_for_selector("html[data-drawn=all]", state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong


def methods(page):
    return page.eval_on_selector_all(
        ".block:not([hidden]) tr[data-method]:not([hidden])", "e => e.map(r => r.dataset.method)"
    )


def test_columns_sort_by_mouse_and_by_keyboard(visit):
    page = visit("boards/open-class-glyphs")
    assert methods(page)[:2] == ["fct:simclr", "fct"]
    head = page.locator(".block:not([hidden]) th button", has_text="new/new")
    head.click()
    page.wait_for_timeout(300)
    assert methods(page)[0] == "bct"
    first = methods(page)
    head.focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert methods(page) != first
    # What has no value is last in both directions.
    assert methods(page)[-1] == "lwf" == first[-1]
    assert page.locator("th[aria-sort=ascending]", has_text="new/new").count() == 1


def test_filters_hide_rows_and_points_and_downloads_follow(visit, site):
    page = visit("boards/open-class-glyphs")
    assert "7 of 7" in page.inner_text("#count")
    page.get_by_text("Filter the methods").click()
    page.get_by_label("side-information").check()
    assert "fct:simclr" not in methods(page)
    names = page.eval_on_selector_all(
        "#tradeoff [data-method]", "e => e.map(x => x.dataset.method)"
    )
    assert "bct" in names
    assert "fct:simclr" not in names
    with page.expect_download() as waiting:
        page.click("#json")
    rows = json.loads(Path(waiting.value.path()).read_text())
    shown = [r["method"] for r in rows if r["kind"] == "method"]
    assert shown == methods(page)
    every = json.loads((site / "boards" / "open-class-glyphs.json").read_text())
    assert all(row in every for row in rows)
    with page.expect_download() as waiting:
        page.click("#csv")
    assert len(Path(waiting.value.path()).read_text().splitlines()) == len(rows) + 1


def test_the_metric_changes_table_and_plots(visit):
    page = visit("boards/open-class-glyphs")
    page.select_option("#metric", "map")
    assert page.locator(".block:not([hidden]) h3").inner_text() == "mAP"
    assert "mAP" in page.text_content("#tradeoff svg")


def test_the_old_models_quality_filters_table_plots_and_downloads(visit):
    page = visit("boards/extended-class-glyphs")
    label = "Quality of the old model (CMC@1)"
    choices = page.get_by_label(label).inner_text().split("\n")
    assert choices == ["all 3 old models", "50.0 (seed 1)", "55.0 (seed 2)", "60.0 (seed 0)"]
    shown = "tr[data-method=bct] td >> nth=2"
    assert page.inner_text(shown).startswith("61.0")
    page.get_by_label(label).select_option(label="55.0 (seed 2)")
    # fct was not measured on it; the others' numbers are those of this one old model.
    assert methods(page) == ["bct", "l2"]
    assert page.inner_text(shown) == "61.0"  # one model has no interval
    assert page.inner_text("tr[data-method=bct] td:last-child") == "1"
    assert "55.0" in page.inner_text("tr[data-bound^=lower]")
    assert page.locator("#tradeoff [data-method=fct]").count() == 0
    with page.expect_download() as waiting:
        page.click("#json")
    rows = json.loads(Path(waiting.value.path()).read_text())
    assert {r["method"]: (r["new/old"], r["seeds"]) for r in rows if r["kind"] == "method"} == {
        "bct": (0.61, "2"), "l2": (0.59, "2"),
    }  # fmt: skip
    page.get_by_label(label).select_option(label="50.0 (seed 1)")
    assert methods(page) == ["bct", "l2", "fct"]
    page.get_by_label(label).select_option(label="all 3 old models")
    assert page.inner_text(shown).startswith("61.0")
    assert "all 3" in page.locator("#old-models option:checked").inner_text()


def test_old_models_are_chosen_in_a_sorted_table(visit):
    """Sorting puts another body in place of the rows'; doing without any method is among them."""
    page = visit("boards/extended-class-glyphs")
    chosen, rows = page.get_by_label("Quality of the old model (CMC@1)"), ".block:not([hidden]) tr"
    order = "all => all.map(e => e.dataset.method || e.dataset.bound).filter(Boolean)"
    before = page.eval_on_selector_all(rows, order)
    chosen.select_option(label="55.0 (seed 2)")
    page.locator(".block:not([hidden]) th", has_text="keeps").first.click()
    page.wait_for_selector(".block:not([hidden]) th[aria-sort=descending]")
    page.wait_for_timeout(100)
    chosen.select_option(label="50.0 (seed 1)")
    assert methods(page) == ["bct", "l2", "fct"]
    body = "e => [...e.parentNode.rows].map(r => r.dataset.method || r.dataset.bound)"
    found = page.eval_on_selector(".block:not([hidden]) .without", body)
    scores = [
        50.0 if name.startswith("lower")
        else float(page.inner_text(f"tr[data-method='{name}'] td >> nth=2").split()[0])
        for name in found
    ]  # fmt: skip
    assert len(scores) > 2 and scores == sorted(scores, reverse=True)
    chosen.select_option(label="all 3 old models")
    assert page.eval_on_selector_all(rows, order) == before


def test_a_readers_question_stays_in_the_address(visit):
    page = visit("index")
    page.locator("a[data-preset=own]").first.click()
    assert page.is_checked("input[name=mode][value=own]")
    assert "mode=own" in page.evaluate("location.hash")


def test_a_method_is_highlighted_in_all_plots(visit):
    page = visit("boards/open-class-glyphs")
    page.locator(".chip", has_text="mixbct").click()
    assert page.locator("tr.lit").first.get_attribute("data-method") == "mixbct"
    for figure in ("#tradeoff", "#cost", "#quality"):
        assert page.locator(f"{figure} [data-method=mixbct].on").count() > 0


def test_hovering_says_the_numbers(visit):
    page = visit("boards/open-class-glyphs")
    page.locator("#tradeoff").scroll_into_view_if_needed()
    page.locator("#tradeoff g[data-mark=dot] [data-method=fct]").hover()
    page.wait_for_timeout(100)
    assert "cross-test 70.0" in page.text_content("#tradeoff [aria-label=tip]")


def test_backfilling_and_sequences_are_drawn(visit):
    page = visit("boards/backfill-glyphs")
    assert page.locator("#backfilling-charts figure svg").count() >= 2
    page.locator("#backfilling-charts select").nth(1).select_option(label="orders of fct")
    assert "true-l2" in page.text_content("#backfilling-charts")
    page = visit("boards/sequential-glyphs")
    assert "direct 71.0" in page.text_content("#sequence svg")


def chosen(page):
    return page.locator("#chosen .pick").first.inner_text()


@pytest.fixture
def chooser(visit):
    """The chooser on the board of extended-data."""
    page = visit("index")
    page.get_by_text("More: which upgrade").click()
    label = page.locator("#choose-board option", has_text="learns from more pictures").inner_text()
    page.select_option("#choose-board", label=label)
    return page


def test_a_link_to_a_seed_leads_to_its_files_and_numbers_unfold(visit):
    page = visit("boards/extended-data-glyphs")
    page.get_by_label("fct, seed 2", exact=True).click()
    page.wait_for_selector("#seed-2:target")
    assert page.get_attribute("#seed-2 a", "href") == "fct-seed-2.json"
    assert "Pictures of seed 0" in page.inner_text("#charts")
    own = page.locator("#own ~ details").nth(2)
    own.locator("summary").click()
    assert "2025-02-03" in own.inner_text()


def test_a_release_links_to_the_boards_that_are_there_today(visit):
    page = visit("releases/0.1.0")
    links = page.eval_on_selector_all("main details a", "all => all.map((a) => a.href)")
    assert links and all(Path(link.removeprefix("file://")).is_file() for link in links)


def test_the_chooser_recommends_one_and_says_why(chooser):
    """Of extended-data: l2 keeps most and hurts; a vendor's user cannot train."""
    page = chooser
    assert page.locator("#chosen .recommended").count() == 1
    text = page.inner_text("#chosen")
    assert chosen(page) == "fct" and "keeps 50 % ± 0 of the upgrade" in text
    assert "Runner-up" in text and "linear keeps 40 % ± 0" in text
    assert "Embed everything again" in text
    page.get_by_label("The index may be rewritten").uncheck()
    assert chosen(page) == "linear:query"
    page.get_by_label("I train it myself").check()
    assert chosen(page) == "bct"
    assert "l2: new/new suffers beyond the interval" in page.inner_text("#chosen")
    page.get_by_label("I use a model that I did not train").check()
    page.get_by_label("The sources of the stored").uncheck()
    page.get_by_label("The old model still runs").uncheck()
    assert "no item can be embedded by both models" in page.inner_text("#chosen")
    assert page.locator("#chosen .pick").count() == 0


TICKS = {
    "runs": "The old model still runs", "sources": "The sources of the stored",
    "rewrite": "The index may be rewritten", "images": "Other pictures of the same kind",
}  # fmt: skip

ADVISED = """all => all.map(on => {
    Object.entries(on).forEach(([name, state]) => {
        const input = document.querySelector(`input[name=${name}]`);
        if (input.checked !== state) input.click();
    });
    const said = place => [...document.querySelectorAll(place)].map(e => e.textContent.trim());
    return [said('#chosen .pick'), said('#chosen .recommended').join()];
})"""
"""Advice under each choice of boxes, found in one call: a layout for each takes longest."""


def possible(row, mode, on):
    """Tell by a method's declarations alone, with nothing else at hand, if it can be taken."""
    given = {"the new classifier", "labels"} if mode == "own" else set()
    both = on["sources"] or (on["runs"] and on["images"])
    lacks = [need for need in row["held"] if need not in given]
    if not both or lacks or row["embeds"] or (row["way"] == "train" and mode != "own"):
        return False
    return on["rewrite"] or not row["rewrites"]


@pytest.mark.parametrize("mode", [pytest.param("vendor", marks=pytest.mark.slow), "own"])
def test_the_chooser_advises_nothing_impossible_whatever_is_ticked(visit, mode):
    page = visit("index")
    data = json.loads(page.locator("#data").text_content())["chooser"]
    page.get_by_text("More: which upgrade").click()
    page.check(f"input[name=mode][value={mode}]")
    advised = 0
    # One box after another, in a Gray code: each click works everything out anew.
    codes = [i ^ i >> 1 for i in range(2 ** len(TICKS))]
    ticked = [{name: not code >> at & 1 for at, name in enumerate(TICKS)} for code in codes]
    for board in data:
        page.select_option("#choose-board", board["slug"])
        rows = {row["method"]: row for row in board["rows"]}
        for on, (picks, text) in zip(ticked, page.evaluate(ADVISED, ticked), strict=True):
            fit = [m for m, row in rows.items() if row["fits"] and possible(row, mode, on)]
            if fit:
                assert picks[0] in fit, (board["slug"], on)
                advised += 1
                continue
            assert not picks, (board["slug"], on, text)
            anew = on["sources"] and on["rewrite"]
            words = "Keep the old" if on["runs"] else "Embed everything" if anew else "Nothing"
            assert text.startswith(words), (board["slug"], on, text)
            assert "no measured method is possible" not in text
        # What is read at once is what a reader sees, but for blanks.
        seen = page.inner_text("#chosen .recommended")
        assert "".join(seen.split()) == "".join(text.split())
    assert advised > 10


def test_the_chooser_advises_no_upgrade_that_is_none(browser, tmp_path):
    records = [make_record(m, 0.4, 0.45, high=0.45) for m in ("bct", "linear")]
    build_folder(write(records, tmp_path / "records"), tmp_path / "site")
    page = browser.new_page()
    page.goto((tmp_path / "site" / "index.html").as_uri())
    words = "by CMC@1 the new model alone (45.0) is no better than the old one (50.0)."
    assert page.inner_text("#chosen .recommended").strip() == f"Keep the old model: {words}"
    page.uncheck("input[name=runs]")
    assert page.inner_text("#chosen .recommended").strip() == f"Embed everything again: {words}"
    assert "of the upgrade" not in page.inner_text("#chosen")
    page.close()


def test_the_chooser_takes_no_amount_that_is_none(visit):
    page = visit("index")
    for items in ("", "0", "-5"):
        page.fill("input[name=items]", items)
        assert page.inner_text("#chosen").strip() == "Items: expected a number of at least 1."
    page.fill("input[name=items]", "5000")
    assert "of one machine" in page.inner_text("#chosen")


def test_the_address_keeps_what_was_chosen(visit):
    page = visit("index")
    page.fill("input[name=items]", "5000")
    page.check("input[name=mode][value=own]")
    page.uncheck("input[name=rewrite]")
    text, address = page.inner_text("#chosen"), page.url
    assert address.endswith("#which?mode=own&rewrite=0&items=5000")
    other = visit("index")
    other.goto(address)
    other.reload()
    assert other.inner_text("#chosen") == text and other.input_value("[name=items]") == "5000"
    assert not other.is_checked("input[name=rewrite]")


def test_the_choosers_arithmetic_is_that_of_the_site(chooser):
    page = chooser
    # 3 passes of 20,000 multiply-adds, 600 steps of 256 pairs
    costs = {"fit_multiply_adds": 3 * 20_000 * 600 * 256, "convert_multiply_adds": 20_000}
    for items, throughput, price in ((None, None, None), (3.6e6, 100, 5.0), (1e9, 2000, 0.4)):
        assumed = Assumptions()
        if items is not None:
            for name, value in (("items", items), ("throughput", throughput), ("price", price)):
                page.fill(f"input[name={name}]", f"{value:g}")
            assumed = Assumptions(items=items, throughput=throughput, price=price)
        text = page.inner_text("#chosen")
        hours = assumed.updating(costs, trains=False)
        assert bill_words(hours, assumed) in text
        assert bill_words(assumed.embedding(assumed.items), assumed) in text


WAYS = {
    "My vendor retires a model": ("#chosen", "Take "),
    "I train my own and cannot touch the index": ("#chosen", "Take bct"),
    "Verification, 1:1": ("#answer", "fct keeps 75 % of the upgrade (1 model)"),
    "A chain of updates": ("#answer", "fct keeps"),
    "Half of the gallery is backfilled": ("#answer", "Half of the gallery backfilled: fct"),
}


@pytest.mark.parametrize("question", WAYS)
def test_a_readers_question_is_answered_in_a_click(visit, question):
    place, words = WAYS[question]
    page = visit("index")
    page.locator(".questions a", has_text=question).click()
    page.wait_for_selector(place)
    assert words in " ".join(page.inner_text(place).split())


BOARDS = [kind for kind in KINDS if kind.startswith("boards/") and "loss-change" not in kind]


@pytest.mark.parametrize("width", [1024, pytest.param(1280, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [
    name if name.endswith(("open-class-glyphs", "ijbc-1v1-glyphs")) else
    pytest.param(name, marks=pytest.mark.slow) for name in BOARDS
])  # fmt: skip
def test_boards_are_tables_from_1024_pixels_on(visit, name, width):
    page = visit(name, width)
    table = page.locator(".block:not([hidden]) table.ranking").first
    assert "as-cards" not in table.get_attribute("class")
    assert table.evaluate("e => e.offsetWidth <= e.parentElement.clientWidth + 1")


def test_two_methods_are_compared_in_a_click(visit):
    """Of extended-data, three seeds without any spread: fct keeps 50 %, linear 40."""
    page = visit("compare")
    page.locator("table.heat td a[data-a=linear][data-b=fct]").click()
    assert "on 1 of 1" not in page.inner_text("#both")
    text = " ".join(page.inner_text("#both").split())
    assert "Of 1 boards linear keeps more on 0, fct on 1; on 0 they cannot be told apart." in text
    assert "40 % ± 0 50 % ± 0 -10 (-10 to -10) fct" in text
    page.select_option("[name=a]", "fct")
    page.select_option("[name=b]", "linear")
    assert "+10 (+10 to +10) fct" in " ".join(page.inner_text("#both").split())
    assert page.url.endswith("#fct&linear")


def test_tabs_show_a_kind_of_pictures_and_a_search_finds_in_all(visit):
    page = visit("boards")
    titles = (
        "[...document.querySelectorAll('.item')].filter(e => e.offsetWidth).map(e => e.innerText)"
    )
    every = page.locator(".item").count()
    page.locator("[data-tab='*']").click()
    assert page.url.endswith("#all")
    assert "characters" in page.inner_text("[data-tab=rendered]")
    page.fill("input[name=words]", "loss-change")
    found = page.evaluate(titles)
    assert found == [] or all("loss" in words.lower() for words in found)
    page.fill("input[name=words]", "MORE pictures")
    cards = page.evaluate(titles)
    (card,) = (
        words for words in cards if words.startswith("The new model learns from more pictures")
    )
    assert "Best: bct keeps 55 % ± 0 of the upgrade." in " ".join(card.split())
    assert page.inner_text(".tabs [role=status]") == f"{len(cards)} of {every}"
    page.fill("input[name=words]", "")
    assert len(page.evaluate(titles)) > 1


def test_an_address_names_a_tab(visit):
    page = visit("methods")
    assert page.locator(
        "tr.item", has=page.get_by_role("link", name="bct", exact=True)
    ).is_visible()
    page.goto(page.url.partition("#")[0] + "#transformation")
    page.reload()
    shown = page.locator("tr.item:visible")
    kinds = set(shown.evaluate_all("all => all.map(e => e.dataset.kind)"))
    assert kinds == {"transformation"}
    row = page.locator("tr.item", has=page.get_by_role("link", name="fastfill", exact=True))
    text = " ".join(row.inner_text().split())
    assert text.endswith("ICLR 2023 code claims paper")
    assert row.get_by_role("link", name="claims").get_attribute("href") == "claims/fastfill.html"


def test_an_address_within_something_folded_unfolds_it(visit):
    page = visit("evidence")
    claim = page.locator("#lists details:not([open]) li[id]").first
    name = claim.get_attribute("id")
    assert not claim.is_visible()
    page.evaluate(f"location.hash = {name!r}")
    page.locator(f"#{name}").wait_for(state="visible")


def test_colours_follow_the_system_and_the_button(visit):
    page = visit("index", color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: light"
    assert page.evaluate(paper) != dark
    page.click("#theme")
    assert page.evaluate(paper) == dark


def test_the_keyboard_reaches_everything(visit):
    page = visit("boards/open-class-glyphs")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator(".chip", has_text="bct").first.focus()
    page.keyboard.press("Space")
    assert page.locator(".chip[aria-pressed=true]").count() == 1


SERIES = """[...document.querySelectorAll('figure > div')].map(box => new Set(
  [...box.querySelectorAll('g[data-mark=dot] [data-method], g[data-mark=line][data-method]')]
    .filter(e => !/--(rest|ink)/.test(e.getAttribute('fill') + e.getAttribute('stroke')))
    .map(e => e.dataset.method)).size)"""


def check_layout(page, high=12_000):
    """Nothing is cut, no text lies on another, boards are tables, the answer is seen at once."""
    faults = page.evaluate(LAYOUT.read_text(encoding="utf-8"))
    if faults:  # a busy machine draws later
        page.wait_for_timeout(2000)
        faults = page.evaluate(LAYOUT.read_text(encoding="utf-8"))
    assert [fault for fault in faults if not fault.startswith("high")] == []
    assert page.evaluate("document.documentElement.scrollHeight") <= high
    assert max(page.evaluate(SERIES), default=0) <= 8
    answer = page.locator(".answer, .sentences").first
    if answer.count():
        assert answer.bounding_box()["y"] < 800


@pytest.mark.parametrize("name", ["index", "boards/extended-class-glyphs"])
def test_pages_fit_a_phone_and_assistive_technology(visit, name):
    page = visit(name, width=400, color_scheme="light")
    page.wait_for_timeout(150)
    check_layout(page)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert not serious_faults(page, "{preload: false}")


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 768, 1280])
@pytest.mark.parametrize("name", KINDS)
def test_pages_fit_every_screen(visit, name, width):
    page = visit(name, width=width, color_scheme="light")
    page.wait_for_timeout(250)
    check_layout(page, 100_000 if name.startswith("records/") else 12_000)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert not serious_faults(page, "{preload: false}")
    # Only colours differ in the dark.
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(100)
    assert not serious_faults(page, "{preload: false, runOnly: ['color-contrast']}")


def test_a_heatmap_that_is_wider_than_the_page_shows_a_group_at_a_time(visit):
    page = visit("index")
    clipped = "(b => b.scrollWidth > b.clientWidth)(document.querySelector('.heat-box'))"
    assert page.is_hidden(".heat-group")
    page.add_style_tag(content=".heat thead th { min-width: 12rem !important; }")
    page.evaluate("dispatchEvent(new Event('resize'))")
    assert page.is_visible(".heat-group")
    # A wide screen shows whole groups, a narrow one parts of them.
    names = "[...document.querySelectorAll('.heat-group option')].map(o => !o.hidden && o.text)"
    shown = "[...document.querySelectorAll('.heat thead th[data-part]')].filter(t => t.offsetWidth)"
    groups = list(filter(None, page.evaluate(names)))
    assert len(groups) == len(set(groups))
    columns = page.evaluate(f"{shown}.length")
    assert columns == int(page.get_attribute(".heat .groups th", "colspan"))
    page.set_viewport_size({"width": 700, "height": 900})
    assert all(page.evaluate(names))
    assert page.evaluate(f"{shown}.length") <= min(columns, 6)
    page.set_viewport_size({"width": 1280, "height": 900})
    assert page.evaluate(f"{shown}.length") == columns
    page.add_style_tag(content=".heat thead th { min-width: 2rem !important; }")
    page.evaluate("dispatchEvent(new Event('resize'))")
    assert page.is_hidden(".heat-group")
    assert not page.evaluate(clipped)


def serious_faults(page, options):
    found = page.evaluate(f"axe.run({options}).then(r => r.violations)")
    return [
        (v["id"], v["nodes"][0]["html"][:120]) for v in found
        if v["impact"] in ("serious", "critical")
    ]  # fmt: skip


@pytest.mark.slow  # on an idle machine
@pytest.mark.parametrize("name", ["boards/open-class-glyphs", "records/extended-data-glyphs/fct"])
def test_a_page_opens_within_a_second(visit, name):
    page = visit(name)
    took = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    page.wait_for_function(f"{took} > 0")
    assert page.evaluate(took) < 1000


def test_without_script_the_numbers_are_there(visit):
    page = visit("boards/open-class-glyphs", java_script_enabled=False)
    text = page.inner_text("main")
    assert "mAP" in text
    assert "75.0" in text
    assert "Plots need JavaScript" in text
    assert not page.is_visible("#metric")
