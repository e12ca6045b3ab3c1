"""The overview where an update helps nobody; sites of several folders."""

import json
import re

from support.command import call
from support.records import make_record
from support.sites import words, write

from leaderboard.site import build_folder


def overview(records, tmp_path):
    """Text of the page, and the data that its chooser reads."""
    page = build_folder(write(records, tmp_path / "records"), tmp_path / "site")[0].read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    return words(page), data["chooser"]


def test_where_nobody_beats_the_old_model_nothing_is_recommended(tmp_path):
    records = [make_record(m, cross, high=0.45) for m, cross in (("bct", 0.4), ("fct", 0.45))]
    text, (board,) = overview(records, tmp_path)
    assert "No method that was measured here keeps anything of the upgrade" in text
    assert not any(row["fits"] for row in board["rows"])
    page = (tmp_path / "site" / "boards" / "open-class-glyphs.html").read_text()
    assert "No method that was measured here is better than doing without any" in page
    assert "none of these methods beats keeping the old model" in page
    assert "the upper bound lies below the lower one" in page


def test_where_training_does_not_beat_raw_features_is_no_board(tmp_path):
    """Beaten by mAP alone, ``grocery`` has a page that says why, and stands in no comparison."""

    def board(track, raw):
        own = {"independent": 0.8, "raw-features": raw, "bct": 0.8, "l2": 0.8}
        return [
            make_record(
                m, {"cmc_at_1": 0.6 + s / 100, "map": 0.6},
                {"cmc_at_1": 0.7 if m == "raw-features" else 0.8, "map": value}, seed=s,
                track=track, dataset={"name": track, "fingerprint": "f"},
            )
            for m, value in own.items() for s in range(3)
        ]  # fmt: skip

    site = tmp_path / "site"
    _, boards = overview([*board("grocery", 0.81), *board("cifar100-strong", 0.79)], tmp_path)
    assert [each["slug"] for each in boards] == ["open-class-cifar100-strong"]
    why = "by mAP the new model alone has 80.0, the raw features of its backbone 81.0"
    listed = (site / "boards.html").read_text()
    (section,) = re.findall(r'<h2 id="unpaid">.*?</section>', listed, re.S)
    assert "open-class-grocery.html" in section and f": {why}." in section
    assert listed.count("open-class-grocery.html") == 1
    page = (site / "boards" / "open-class-grocery.html").read_text()
    assert f"Training does not pay here: {why}. No method has a rank." in page
    assert "boards/open-class-grocery.html" not in (site / "methods" / "bct.html").read_text()
    rows = json.loads((site / "boards" / "open-class-grocery.json").read_text())
    assert {row["rank"] for row in rows if row["method"] == "bct"} == {None}
    alone, none = overview(board("grocery", 0.81), tmp_path / "alone")
    assert none == [] and "The commonest upgrade" not in alone


def test_what_is_below_the_old_model_is_not_recommended(tmp_path):
    text, (board,) = overview(
        [make_record("bct", 0.6, 0.9), make_record("fct", 0.45, 0.9)], tmp_path
    )
    assert {row["method"]: row["fits"] for row in board["rows"]} == {"bct": True, "fct": False}
    assert "bct keeps 25 % of the upgrade (1 model)" in text


# --- one upgrade on several tracks


def tracks_side_by_side(page):
    """Heads and rows of the table of tracks; () where there is none."""
    text = page.read_text()
    found = re.search(r'<table class="heat whole across">.*?</table>', text, re.S)
    if found is None:
        return ()
    rows = re.findall(r"<tr>(.*?)</tr>", found[0], re.S)
    heads, *lines = [
        [words(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows
    ]
    return heads, lines


def test_tracks_of_the_commonest_upgrade_stand_side_by_side(tmp_path):
    """Those of enough models, photographs first, with the methods that all of them have."""
    tracks = {  # new/new, and classes of training among 100
        "glyphs": (0.9, 40), "omniglot": (0.7, 40), "cifar100-small": (0.5, 100),
        "glyphs-high": (0.9, 40),
    }  # fmt: skip
    seeds = {"glyphs-high": 1}  # too few
    methods = {"glyphs": ["bct", "fct", "l2"]}
    records = [
        make_record(m, 0.4 + part, high, seed, protocol="extended-class", track=track,
                    lower=0.4, high=high,
                    dataset={"name": track, "n_classes": 100, "facts": {"train_classes": trained}})
        for track, (high, trained) in tracks.items()
        for m, part in (("bct", 0.05), ("fct", 0.03), ("l2", 0.01))
        if m in methods.get(track, ["bct", "fct"])
        for seed in range(seeds.get(track, 3))
    ]  # fmt: skip
    overview(records, tmp_path)
    heads, lines = tracks_side_by_side(tmp_path / "site" / "index.html")
    assert [each.split(" classes")[0] for each in heads[1:]] == [
        "small photographs of objects", "drawn characters", "rendered characters (smoke test)",
    ]  # fmt: skip
    assert heads[1].endswith("classes seen in training")
    assert heads[2].endswith("classes never seen in training")
    # bct: 0.05 of 0.1, of 0.3 and of 0.5; fct: 0.03 of them
    assert lines == [["bct", "50", "17", "10"], ["fct", "30", "10", "6"]]


def test_one_track_stands_beside_none(tmp_path):
    records = [make_record(m, 0.6, seed=seed) for m in ("bct", "fct") for seed in range(3)]
    overview(records, tmp_path)
    assert tracks_side_by_side(tmp_path / "site" / "index.html") == ()


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
    assert code == 2 and f"{tmp_path / 'two'}: no records" in err and len(err.splitlines()) == 1


# --- what a folder of changed runs shows, and what readers ask


def test_a_folder_of_changed_runs_has_a_full_page(tmp_path):
    """``bench run --set`` writes nothing else: a blank overview says that something broke."""
    records = [
        make_record(m, v, 0.9, changed={"recipe.epochs": 1})
        for m, v in (("bct", 0.6), ("l2", 0.52))
    ]
    text, (board,) = overview(records, tmp_path)
    assert [row["method"] for row in board["rows"]] == ["bct", "l2"]
    assert "bct keeps 25 % of the upgrade" in text and "recipe.epochs=1" in text
    page = (tmp_path / "site" / "index.html").read_text()
    assert re.search(r'<th scope="row"><a href="methods/bct.html">bct</a></th><td', page)
    assert "boards/open-class-glyphs-recipe.epochs-1.html" in page
    method = (tmp_path / "site" / "methods" / "bct.html").read_text()
    assert 'id="kept"' in method


def test_without_an_upgrade_no_empty_table_stands_there(tmp_path):
    """A few epochs leave the new model below the old one: no method keeps a share of that."""
    records = [
        make_record(m, 0.4, 0.45, high=0.45, changed={"recipe.epochs": 1}) for m in ("bct", "fct")
    ]
    text, (board,) = overview(records, tmp_path)
    page = (tmp_path / "site" / "index.html").read_text()
    assert "<table" not in page and "worse than no method" not in text
    assert "On no board here the new model alone is better than the old one" in text
    assert {row["share"] for row in board["rows"]} == {None}


def test_a_question_says_what_it_was_measured_on(tmp_path):
    scores = {"tar_at_far_1e-2": 0.7}
    records = [make_record(m, scores, protocol="ijbc-1v1") for m in ("bct", "fct")]
    assert (
        "Verification, 1:1 (on rendered characters (smoke test), 1 model)"
        in overview(records, tmp_path)[0]
    )


def test_a_chain_says_what_goes_without_the_models_between(tmp_path):
    """Chained, fct loses to the old model; straight from the first one it wins."""
    names = [f"v{i}" for i in range(1, 4)]
    scores = {"v3/v1": {"map": 0.4}, "v1/v1": {"map": 0.5}, "v3/v3": {"map": 0.9},
              "v3/v1 direct": {"map": 0.61}, "v1''/v1''": {"map": 0.3}}  # fmt: skip
    made = make_record("fct", {"map": 0.4}, protocol="sequential", scores=scores, intervals={},
                       models={name: {"dim": 64} for name in names})  # fmt: skip
    build_folder(write([made], tmp_path / "records"), tmp_path / "site")
    page = (tmp_path / "site" / "boards" / "sequential-glyphs.html").read_text()
    text = words(re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert "Updated one after the other, no method that was measured here is better" in text
    assert (
        "Without the models between (v3/v1 direct) fct has 61.0, the old model 50.0, which cannot "
        "be told apart." in text
    )
    assert "v1, 2 updates" in text and "v1''/" not in text


def test_a_method_shows_a_setting_once_that_does_not_touch_it(tmp_path):
    settings = ("width-512", "width-1024", "width-2048")
    records = [
        make_record(m, v + (i / 50 if m == "fct" else 0), protocol=f"capacity:{s}")
        for m, v in (("bct", 0.6), ("fct", 0.62)) for i, s in enumerate(settings)
    ]  # fmt: skip
    build_folder(write(records, tmp_path / "records"), tmp_path / "site")
    rows = {
        m: len(re.findall(r'<tr><td class="', (tmp_path / f"site/methods/{m}.html").read_text()))
        for m in ("bct", "fct")
    }
    assert rows == {"bct": 1, "fct": 3}


def test_the_guide_is_a_page(tmp_path):
    overview([make_record("bct", 0.6)], tmp_path)
    page = (tmp_path / "site" / "own-vectors.html").read_text()
    assert (
        '<h1 id="your-own-vectors">Your own vectors</h1>' in page
        and "<table>" in page
        and "```" not in page
    )
    assert 'href="own-vectors.html"' in (tmp_path / "site" / "index.html").read_text()
