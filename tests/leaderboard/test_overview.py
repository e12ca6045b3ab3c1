"""The overview where an update helps nobody; sites of several folders."""

import html
import json
import re

from support.command import call
from support.records import make_record
from support.sites import write

from leaderboard.site import build_folder


def overview(records, tmp_path):
    """Text of the page, and the data that its chooser reads."""
    page = build_folder(write(records, tmp_path / "records"), tmp_path / "site")[0].read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", page).split())), data["chooser"]


def test_where_nobody_beats_the_old_model_nothing_is_recommended(tmp_path):
    records = [make_record(m, cross, high=0.45) for m, cross in (("bct", 0.4), ("fct", 0.45))]
    text, (board,) = overview(records, tmp_path)
    assert "The commonest upgrade" not in text
    assert not any(row["fits"] for row in board["rows"])
    page = (tmp_path / "site" / "boards" / "open-class-glyphs.html").read_text()
    assert "No method that was measured here is better than doing without any" in page
    assert "no method beats keeping the old model" in page
    assert "the upper bound lies below the lower one" in page


def test_what_is_below_the_old_model_is_not_recommended(tmp_path):
    text, (board,) = overview(
        [make_record("bct", 0.6, 0.9), make_record("fct", 0.45, 0.9)], tmp_path
    )
    assert {row["method"]: row["fits"] for row in board["rows"]} == {"bct": True, "fct": False}
    assert "bct keeps 25 % of the upgrade (1 model)" in text


# --- several folders of records


def test_folders_of_records_stand_on_one_site(tmp_path):
    """Of a run that both have the first folder's record is shown, and the other one told."""
    one = write([make_record("bct", 0.6), make_record("l2", 0.6)], tmp_path / "one")
    two = write([make_record("bct", 0.7), make_record("fct", 0.7)], tmp_path / "two")
    code, out, err = call("leaderboard", one, two, one, "--out", tmp_path / "site")
    assert code == 0 and out.strip().endswith("index.html")
    (line,) = err.splitlines()
    assert line.startswith("bench: skipped two/") and "was read before" in line
    assert str(tmp_path) not in line
    rows = json.loads((tmp_path / "site/boards/open-class-glyphs.json").read_text())
    cross = {row["method"]: row["new/old"] for row in rows if row["kind"] == "method"}
    assert cross == {"bct": 0.6, "l2": 0.6, "fct": 0.7}


def test_a_folder_without_records_among_others_is_refused(tmp_path):
    one = write([make_record("bct")], tmp_path / "one")
    (tmp_path / "two").mkdir()
    code, _, err = call("leaderboard", one, tmp_path / "two", "--out", tmp_path / "site")
    assert code == 2 and f"{tmp_path / 'two'}: no records" in err
