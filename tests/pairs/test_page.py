"""The page of real models: from one model to another in two clicks."""

import re
from pathlib import Path

import pytest
from support.sites import rendered

from leaderboard.pages.pairs import pairs_page, read_pairs

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def page():
    damaged = []
    records = read_pairs([RESULTS], damaged.append)
    assert records and not damaged
    values = pairs_page(records)
    return records, values, rendered("pairs", values, pairs=True)


def test_every_pair_is_two_clicks_away(page):
    """The entry of the top bar, then a cell of the matrix, which leads to the pair's table."""
    records, _, text = page
    assert '<a href="pairs.html">Real models</a>' in text
    links = set(re.findall(r'href="#([a-z0-9-]+--[a-z0-9-]+)"', text))
    places = set(re.findall(r'<details id="([a-z0-9-]+--[a-z0-9-]+)">', text))
    assert links == places == {f"{r.old.id}--{r.new.id}" for r in records}


def test_the_plot_and_the_claims_are_there(page):
    _, values, text = page
    assert set(values["figures"]) == {"pairs-gain.svg"} and "assets/figures/pairs-gain.svg" in text
    assert text.count(">agree<") + text.count(">disagree<") + text.count(">cannot tell<") >= 12


def test_a_damaged_record_is_passed_over(tmp_path):
    (tmp_path / "pairs" / "x").mkdir(parents=True)
    (tmp_path / "pairs" / "x" / "a--b.json").write_text("{}")
    damaged = []
    assert read_pairs([tmp_path], damaged.append) == []
    assert len(damaged) == 1 and "a--b.json" in str(damaged[0])
