"""Numbers on the built pages against the records themselves: of a sample, and as committed."""

import html
import re
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import pytest
from support.sites import sample

from benchmark.records.files import read_records
from benchmark.report import numbers
from benchmark.report.scenarios import CLASSES
from benchmark.report.select import case_head
from leaderboard.names import file_name
from leaderboard.site import build, build_folder

COMMITTED = Path(__file__).parents[2] / "results"
ROW = re.compile(r'<tr data-method="(.*?)">(.*?)</tr>')
CELL = re.compile(r"<t[dh]([^>]*)>(.*?)</t[dh]>")
HEAD = re.compile(r'<th scope="col">(?:<button type="button">)?(.*?)(?:<small>|</button>|</th>)')


@pytest.fixture(scope="module", params=["sample", pytest.param("results", marks=pytest.mark.slow)])
def built(request, site, tmp_path_factory):
    """The folder of a site and its records."""
    if request.param == "sample":
        return site, sample()
    out = tmp_path_factory.mktemp("committed") / "site"
    build_folder(COMMITTED, out)
    return out, read_records(COMMITTED / "measured")


def plain(text):
    return html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\xa0", " ").strip()


def rankings(page):
    """Metric, method, heading -> what the cell sorts by and what it says, of a board's tables."""
    for block in page.split('<section class="block" data-metric="')[1:]:
        table = block.partition("</table>")[0]
        heads = [plain(head) for head in HEAD.findall(table)]
        for method, row in ROW.findall(table):
            cells = [(re.search('data-sort="(.*?)"', about), plain(text))
                     for about, text in CELL.findall(row)]  # fmt: skip
            if len(cells) == len(heads):  # what is not applicable has fewer
                said = {h: (s and s[1], t) for h, (s, t) in zip(heads, cells, strict=True)}
                yield block.partition('"')[0], html.unescape(method), said


def boards(site, records):
    """Page of a board -> its records, found by their names alone."""
    groups = defaultdict(list)
    newest = {}
    for record in records:
        if record.status == "done" and not record.changed:
            versions = record.protocol_version, record.track_version
            key = record.protocol, record.track
            newest[key] = max(newest.get(key, versions), versions)
            groups[*key, versions].append(record)
    for (protocol, track, versions), members in groups.items():
        if newest[protocol, track] == versions:
            page = site / "boards" / f"{file_name(protocol, track)}.html"
            yield page.read_text(encoding="utf-8"), members


def test_each_number_of_a_boards_tables_is_the_records(built):
    checked = 0
    for page, records in boards(*built):
        for metric, method, said in rankings(page):
            own = [record for record in records if record.method == method]
            scale = 100 if numbers.metric(metric).unit == "share" else 1
            for case in own[0].scores:
                values = [
                    record.scores[case].get(metric) for record in own if case in record.scores
                ]
                head = case_head(case)
                if head not in said or len(values) < len(own) or None in values:
                    continue
                mean = fmean(values)
                sort, text = said[head]
                assert float(sort) == pytest.approx(mean, rel=1e-5, abs=1e-12), (method, case)
                assert float(text.split()[0]) == pytest.approx(scale * mean, abs=0.0501)
                checked += 1
    assert checked > 100


def test_each_share_that_is_kept_is_the_records(built):
    """Of boards with one update and nothing backfilled: within each seed, then the mean."""
    checked = 0
    for page, records in boards(*built):
        first = records[0]
        if len(first.models) > 2 or any(r.backfilling and r.orders for r in records):
            continue
        for metric, method, said in rankings(page):
            sort, text = said["keeps"]
            shares = []
            for record in (r for r in records if r.method == method):
                cross = record.scores.get("new/old", {}).get(metric)
                low = record.bounds.get("lower", {}).get(metric)
                high = record.bounds.get("upper", {}).get(metric)
                if None not in (cross, low, high):
                    shares.append((cross - low) / (high - low) if abs(high - low) > 0.02 else None)
            if not sort or not shares or None in shares:
                continue
            assert float(sort) == pytest.approx(fmean(shares), rel=1e-4, abs=1e-6), (method, metric)
            assert int(text.split()[0]) == pytest.approx(100 * fmean(shares), abs=0.501)
            checked += 1
    assert checked > 20


def score_rows(page):
    """Metric -> seed -> heading -> text, of a page of records; ``""`` for the one record or means.

    What is the same of all seeds stands under ``every seed``.
    """
    found = defaultdict(dict)
    part = page.partition('id="numbers"')[2].partition("</section>")[0]
    for table in part.split("<table>")[1:]:
        heads = [plain(head) for head in HEAD.findall(table)][1:]
        metric = None
        for row in re.findall("<tr.*?</tr>", table)[1:]:
            name, *cells = [plain(text) for _, text in CELL.findall(row)]
            if 'class="group"' in row:
                metric = name
            else:
                own = dict(zip(heads, cells, strict=True))
                found[metric or name].setdefault(name if metric else "", own)
    return found


def record_pages(site, records):
    """Path and text of a page of records, and the records."""
    groups = defaultdict(list)
    for record in records:
        if record.status == "done" and not record.changed:
            groups[file_name(record.protocol, record.track), record.method].append(record)
    for (board, method), members in groups.items():
        path = site / "records" / board / f"{file_name(method)}.html"
        yield path, path.read_text(encoding="utf-8"), members


def test_each_number_of_a_records_page_is_the_records(built):
    checked = 0
    for path, page, members in [*record_pages(*built)][::5]:
        lines = score_rows(page)
        for record in members:
            if f'id="seed-{record.seed}"' not in page:  # of an older version
                continue
            for case, scores in record.scores.items():
                for key, value in scores.items():
                    about = numbers.metric(key)
                    rows = lines[about.label]
                    alone = rows.get("every seed", rows[""])
                    text = rows.get(f"seed {record.seed}", alone)[case_head(case)]
                    alike = all(each.scores == record.scores for each in members)
                    assert len(rows) > 1 or alike, (path, key)
                    checked += 1
                    if value is None:
                        assert text in ("", numbers.DASH)
                    else:
                        scale = 100 if about.unit == "share" else 1
                        assert float(text.split()[0]) == pytest.approx(scale * value, abs=0.0501)
        assert "''/" not in html.unescape(page), path  # updates are counted, not primed
    assert checked > 20


def test_each_mean_of_a_records_page_is_that_of_the_seeds(built):
    checked = 0
    for path, page, members in record_pages(*built):
        if not all(f'id="seed-{each.seed}"' in page for each in members):
            continue
        for key in {key for r in members for each in r.scores.values() for key in each}:
            about = numbers.metric(key)
            for case, text in score_rows(page)[about.label][""].items():
                values = [r.scores.get(case, {}).get(key) for r in members]
                if None not in values:
                    scale = 100 if about.unit == "share" else 1
                    mean = scale * fmean(values)
                    assert float(text.split()[0]) == pytest.approx(mean, abs=0.0501), (path, case)
                    checked += 1
    assert checked > 5


def test_nothing_is_green_or_red_under_three_models(built):
    site, _ = built
    rows = 0
    for path in (site / "boards").glob("*.html"):
        for method, row in ROW.findall(path.read_text(encoding="utf-8")):
            if re.search(r'<td class="few">[12]</td>$', row):
                rows += 1
                assert not re.search('class="(?:[^"]* )?(?:yes|no|best)[" ]', row), (path, method)
    assert rows


def test_seen_and_unseen_classes_are_never_beside_each_other(built):
    """No group of the heatmap, and no board, has both kinds; heads of tracks say which it is."""
    site, _ = built
    kinds = {}
    for path in (site / "boards").glob("*.html"):
        about = path.read_text(encoding="utf-8").partition('class="about">')[2].partition("</p>")[0]
        kinds[path.name] = {kind for kind, words in CLASSES.items() if words and words in about}
        assert len(kinds[path.name]) < 2
    page = (site / "index.html").read_text(encoding="utf-8")
    tracks, _, kept = page.partition('id="kept"')
    for name, about in re.findall(r'<a href="boards/([^"]*)" title[^>]*>.*?<small>(.*?)</', tracks):
        assert {about} == {CLASSES[kind] for kind in kinds[name]}, name
    head = kept[kept.index('class="heat') :].partition("</thead>")[0]
    columns = re.findall(r'<th scope="col" data-part="(\d+)"><a href="boards/(.*?)"', head)
    assert columns
    for part in {part for part, _ in columns}:
        found = set().union(*(kinds[name] for each, name in columns if each == part))
        assert len(found) < 2, part  # of seen, never seen, and of both


def test_a_method_has_every_scenario_in_one_list(built):
    """Without a script, each board once, with its own share or why there is none."""
    site, records = built
    listed = 0
    for method in {record.method for record in records}:
        page = (site / "methods" / f"{file_name(method)}.html").read_text(encoding="utf-8")
        part = page.partition('<div class="heat-list">')[2].partition("</div>")[0]
        rows = re.findall(r'<tr><td class=".*?" title="(.+?)">(.+?)</td>.*?href="(.*?)"', part)
        assert len({href for *_, href in rows}) == len(rows) == part.count("<tr>"), method
        for hint, share, href in rows:
            assert (site / "methods" / href).is_file(), (method, href)
            assert share == "n/a" or f"{share.removeprefix('-')}\xa0%" in hint, (method, href)
        listed += len(rows)
    assert listed


def test_second_hand_methods_are_marked_in_rows_and_told_on_their_page(make, tmp_path):
    records = [make(m, s) for m, s in (("independent", 0.1), ("csd", 0.7), ("bct", 0.6))]
    build([*records], tmp_path)
    (board,) = (tmp_path / "boards").glob("*.html")
    rows = re.findall(r"<tr[^>]*>.*?</tr>", board.read_text(), re.DOTALL)
    marked = {
        m for m in ("csd", "bct") for row in rows if f">{m}</a>" in row and "second-hand" in row
    }
    assert marked == {"csd"}
    for method, words in (
        ("csd", "second-hand: neither was read"),
        ("bct", "paper: the publication"),
    ):
        page = (tmp_path / "methods" / f"{method}.html").read_text()
        assert "<dt>fidelity</dt>" in page and words in page
