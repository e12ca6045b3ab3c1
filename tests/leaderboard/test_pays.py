"""The page of factors: written by a study with records, told of damage, absent before both."""

import shutil
from pathlib import Path

import pytest
from support.records import make_record
from support.sites import rendered

from benchmark.records.files import write_record
from benchmark.records.record import record_path
from benchmark.report.outcome import RAW
from benchmark.studies.factors.model import FILE, read_study
from leaderboard.pages.evidence import factors_page

PAYS = Path(__file__).parents[2] / "results" / "studies" / "pays"


@pytest.fixture
def study(tmp_path):
    """Records of the committed plan: a share that rises with the number of classes.

    No mean lies on half a point and none at old/old: processors would round it to either side.
    """
    from benchmark.harness.core_board import read_core_board

    folder = tmp_path / "studies" / "pays"
    folder.mkdir(parents=True)
    shutil.copy(PAYS / FILE, folder)
    facts = read_study(folder)
    levels = list(facts.factors["classes"].levels.values())
    for number, board in enumerate(read_core_board(PAYS / "board.yaml").boards):
        changed = {k: list(v) if isinstance(v, tuple) else v for k, v in board.set.items()}
        for seed in (0, 1):
            for method, share in (("independent", 0.0), ("bct", None)):
                record = make_record(method, seed=seed, changed=changed)
                level = levels.index(facts.factors["classes"].level(record) or "")
                kept = 0.2 * level - 0.25 + 0.02 * seed if share is None else share
                scores = {"cmc_at_1": 0.4 + 0.2 * kept, "map": 0.2 + 0.2 * kept}
                record = make_record(
                    method, scores, {"cmc_at_1": 0.6, "map": 0.4}, seed, changed=changed,
                    track=facts.track, protocol=facts.protocol, lower=0.4,
                )  # fmt: skip
                record.scores["old/old"]["map"] = 0.2
                place = folder / "changed" / str(number)
                path = record_path(place, facts.protocol, facts.track, method, seed)
                write_record(path, record)
    return tmp_path


def test_the_page_says_from_where_on_a_method_pays(study):
    damaged = []
    values = factors_page([study], damaged.append)
    assert not damaged and values is not None
    text = rendered("pays", values, pays=True)
    assert '<a href="pays.html">When it pays</a>' in text
    told = values["factors"][2]["told"][0][1]
    matters = "The number of training classes matters: bct keeps most at 3,000 and least at 30."
    assert told.startswith(matters), told
    by = "By CMC@1, on average over the other settings"
    assert f"{by}, methods are surely above the old model only here." in text
    assert "The additive model explains 100" in text
    assert "cut to -100 to 150" in text
    assert "is the control" not in text
    assert "is the control" in rendered("pays", values | {"raw": RAW}, pays=True)
    assert "By these seeds above old/old from 300 on: bct." in text
    assert len(values["figures"]) == len(values["factors"]) == 5
    for name in values["figures"]:
        assert f"assets/figures/{name}" in text
    assert text.count("<details>") == 10


def test_there_is_no_page_before_a_study_and_its_records(tmp_path):
    damaged = []
    assert factors_page([tmp_path], damaged.append) is None
    folder = tmp_path / "studies" / "pays"
    folder.mkdir(parents=True)
    shutil.copy(PAYS / FILE, folder)
    assert factors_page([tmp_path], damaged.append) is None and not damaged
    (folder / FILE).write_text("track: [")
    assert factors_page([tmp_path], damaged.append) is None
    assert [FILE in str(each) for each in damaged] == [True]
