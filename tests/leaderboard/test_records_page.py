"""The page of a method's records on a board: what all seeds share, and what each has of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command import call
from support.records import make_record
from support.sites import unstored, words, write

from benchmark.records.details_files import details_path
from benchmark.records.record import SCHEMA
from benchmark.report.text_table import simple_table
from leaderboard.pages.record import record_page
from leaderboard.pages.record_tables import MOST_SEEDS, by_seed, in_full
from leaderboard.read.records import read_seeds
from leaderboard.site import build_folder


def values(records):
    return record_page(read_seeds(unstored(records), []))


def test_what_all_seeds_share_stands_once_and_the_rest_by_seed():
    records = [
        make_record(
            seed=s, environment={"python": "3.11.7", "cpu": f"cpu {s % 2}"}, config={"a": 1}
        )
        for s in range(3)
    ]
    page = values(records)
    sections = dict(page["sections"])
    assert sections["Environment"] == (("python", "3.11.7"),)
    assert sections["Parameters of the method"] == (("a", "1"),)
    own = {seed: dict(pairs) for seed, pairs in page["own"]}
    assert [own[seed]["Environment: processor"] for seed in range(3)] == ["cpu 0", "cpu 1", "cpu 0"]
    assert own[2]["finished"].startswith("2025-01-03")
    assert all("schema" not in each for each in own.values())
    assert dict(page["provenance"])["schema"] == str(SCHEMA)


@pytest.mark.parametrize("told", [["32-true"] * 2, ["32-true", "bf16-mixed"], ["bf16-mixed"] * 2])
def test_the_command_trains_at_the_precision_of_the_records(told):
    """Or it trains other models than theirs, and takes no published one."""
    records = [make_record(seed=s, environment={"precision": p}) for s, p in enumerate(told)]
    shown = values(records)["command"]
    assert ("--precision 32-true" in shown) is (set(told) == {"32-true"})


def test_one_seed_has_everything_in_the_shared_parts():
    page = values([make_record(config={"a": 1})])
    assert page["own"] == []
    assert page["seed_words"] == "seed 0"
    assert dict(page["provenance"])["finished"].startswith("2025-01-01")
    assert not page["scores"].seeds
    assert not page["full"]


@given(st.lists(st.lists(st.sampled_from("abcd"), unique=True, max_size=4), min_size=2, max_size=5))
def test_rows_of_one_name_stand_together_and_no_number_is_lost(tables):
    parts = [
        (seed, simple_table("t", "", ("name",), ["x", f"own {seed}"],
                            [[name, f"{name}{seed % 2}", "y"] for name in names]))
        for seed, names in enumerate(tables)
    ]  # fmt: skip
    table = by_seed("t", parts)
    heads = [column.head for column in table.blocks[0].columns]
    found = {}
    for row in table.rows:
        name, *seed = (label.text for label in row.labels)
        texts = {head: cell.text for head, cell in zip(heads, row.cells[0], strict=True)}
        seeds = range(len(parts)) if seed in ([], ["every seed"]) else [int(seed[0].split()[1])]
        found |= {(name, each): texts for each in seeds}
    for seed, names in enumerate(tables):
        for name in names:
            assert found[name, seed]["x"] == f"{name}{seed % 2}"
            assert found[name, seed][f"own {seed}"] == "y"
    assert len(found) == sum(map(len, tables))
    order = [row.labels[0].text for row in table.rows]
    assert order == sorted(order, key=list(dict.fromkeys(order)).index)


def test_a_page_is_small_whatever_the_number_of_seeds(tmp_path):
    """The main scores of a hundred seeds, all others of as many as there is room for."""
    scores = {f"cmc_at_{k}": 0.5 for k in range(1, 60)}
    records = [
        make_record("bct", {k: v + 0.001 * (s % 90) for k, v in scores.items()}, scores, seed=s,
                    run={"finished": "2025-01-01T00:00:00+00:00"})
        for s in range(MOST_SEEDS + 30)
    ]  # fmt: skip
    full = in_full(records)
    assert 1 < full < MOST_SEEDS
    assert in_full(records[: full - 1]) == full - 1
    build_folder(write(records, tmp_path / "records"), tmp_path / "site")
    folder = tmp_path / "site" / "records" / "open-class-glyphs"
    page = (folder / "bct.html").read_text()
    assert len(page) < 512 * 1024
    assert len(list(folder.glob("bct-seed-*.json"))) == len(records)
    text = words(page)
    assert f"Main scores are those of the first {MOST_SEEDS} of {len(records)} seeds." in text
    assert f"All else is that of seeds 0 to {full - 1}." in text
    assert page.count(f">seed {full}<") == 1 < page.count(">seed 0<")
    assert f">seed {MOST_SEEDS}<" not in page
    assert f'id="seed-{len(records) - 1}"' in page


def test_what_is_wrong_with_one_seed_is_said_of_that_one(tmp_path):
    records = [make_record(seed=s, details="0" * 64 if s == 1 else None) for s in range(3)]
    records.append(make_record(seed=3, training=4))
    root = write(records, tmp_path / "records")
    details_path(records[1].path(root)).write_bytes(b"of another record")
    code, _, err = call("leaderboard", root, "--out", tmp_path / "site")
    assert code == 0
    assert sum("of another record" in line for line in err.splitlines()) == 1
    folder = tmp_path / "site" / "records" / "open-class-glyphs"
    text = words((folder / "bct.html").read_text())
    assert "Seed 1: Its results by query are left out: of another record" in text
    assert "Seeds 0 to 2: Older version" in text
    assert not list(folder.glob("*.details.xz"))


def test_a_method_that_could_not_be_applied_to_a_seed_says_so():
    page = values([make_record("lwf", reason="no head", seed=0), make_record("lwf", seed=1)])
    assert page["remarks"][0] == "Seed 0: Not applicable: no head"
    assert page["drawn"].seed == 1
    both = values([make_record("lwf", reason="no head", seed=s) for s in (0, 1)])
    assert both["remarks"][0] == "Not applicable: no head"


@pytest.mark.parametrize("n", [2, 5])
def test_means_have_the_interval_over_seeds(n):
    records = [make_record(cross=0.6 + 0.01 * s, seed=s) for s in range(n)]
    shown = values(records)["scores"].shown
    heads = [column.head for column in shown.blocks[0].columns]
    cell = dict(zip(heads, shown.rows[0].cells[0], strict=True))["new/old"]
    assert cell.text == f"{60 + (n - 1) / 2:.1f}"
    assert float(cell.spread[1:]) == pytest.approx({2: 6.4, 5: 2.0}[n])
