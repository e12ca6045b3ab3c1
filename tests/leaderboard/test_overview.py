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


def test_keeping_the_old_model_is_said_to_be_best(tmp_path):
    records = [make_record(m, cross, high=0.45) for m, cross in (("bct", 0.4), ("fct", 0.45))]
    text, (board,) = overview(records, tmp_path)
    assert "upper bound 45.0; below today. No method beats keeping the old model" in text
    assert board["worse"] is True
    assert all(row["cross"] < row["lower"] for row in board["rows"])
    page = (tmp_path / "site" / "boards" / "open-class-glyphs.html").read_text()
    assert "no method beats keeping the old model" in page
    assert "the upper bound lies below the lower one" in page


def test_elsewhere_nothing_of_it_is_said(tmp_path):
    text, (board,) = overview([make_record("bct", 0.6), make_record("fct", 0.45)], tmp_path)
    assert "keeping the old model" not in text and board["worse"] is False


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
