"""Wins and losses of two methods, counted by hand."""

from support.records import make_record
from support.sites import boards_of, write

from benchmark.metrics.estimate import Estimate
from leaderboard.pages.front import _ends, compare
from leaderboard.site import build_folder


def records(protocol, scores):
    """Three seeds of each method; from 0.5 to 0.9 is the upgrade."""
    return [
        make_record(m, v, 0.95, seed=s, protocol=protocol)
        for m, values in scores.items() for s, v in enumerate(values)
    ]  # fmt: skip


def test_wins_and_losses_by_hand():
    made = [
        *records("open-class", {"bct": (0.7, 0.72, 0.71), "fct": (0.6, 0.61, 0.62)}),
        *records("open-data", {"bct": (0.6, 0.6, 0.6), "fct": (0.61, 0.7, 0.52)}),
        *records("extended-class", {"bct": (0.6, 0.6, 0.6), "fct": (0.8, 0.8, 0.8), "l2": (0.5,)}),
    ]
    page = compare(boards_of(made))
    assert page["main"] == ["bct", "fct"], "l2 has one model alone"
    texts = [[cell.text for cell in cells] for _, _, cells in page["matrix"]]
    assert texts == [["", "1:1"], ["1:1", ""]]
    found = dict(zip([slug for slug, _ in page["data"]["boards"]],
                     page["data"]["differences"]["bct fct"], strict=True))  # fmt: skip
    # Shares of 0.4: differences of 25, 27.5 and 22.5 points; 4.303 times 1.443 to each side.
    assert found["open-class-glyphs"] == [25, 19, 31, 1]
    assert found["extended-class-glyphs"] == [-50, -50, -50, -1]
    low, high, side = found["open-data-glyphs"][1:]
    assert low < 0 < high and side == 0
    # Rounded ends would not tell this one.
    assert _ends(Estimate(0.1, 0.004, 0.196)) == [10, 0, 20, 1]
    assert _ends(Estimate(0.1)) == [10, None, None, 0]


def test_a_site_that_ranks_no_two_methods_says_so(site, tmp_path):
    said = "No board here ranks two methods."
    assert said not in (site / "compare.html").read_text()
    root = write([make_record(m, 0.7, 0.95) for m in ("bct", "fct")], tmp_path / "records")
    page, _ = build_folder(root, tmp_path / "site")
    text = page.with_name("compare.html").read_text()
    assert said in text and "Wins and losses" not in text
