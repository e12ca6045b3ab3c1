"""Factors: effects that are planted are found, by hand and by a naive regression."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats
from support.command import call
from support.records import make_record

from benchmark.errors import AbsentError, BenchError
from benchmark.harness.core_board import read_core_board
from benchmark.records.files import write_record
from benchmark.records.record import record_path
from benchmark.studies.factors import tables
from benchmark.studies.factors.model import FILE, Factor, FactorStudy, _Design, fit, read_study

PAYS = Path(__file__).parents[2] / "results" / "studies" / "pays"
STUDY = FactorStudy(
    track="glyphs", protocol="open-class", metrics=("cmc_at_1",), upgrade=0.02, cut=(-1.0, 1.5),
    matters=0.2, draws=300,
    factors={
        "head": Factor(title="head", key="new.head", levels={"softmax": "soft", "arcface": "arc"}),
        "size": Factor(
            title="size", key="new.dim", ordered=True, levels={"8": "8", "16": "16", "32": "32"}
        ),
    },
)  # fmt: skip
HEAD, SIZE = {"softmax": -0.3, "arcface": 0.3}, {8: -0.4, 16: 0.1, 32: 0.3}


def records(noise=0.02, seeds=6, base=0.2, skip=(), upgrade=0.3, flat=(), more=()):
    """Cells whose share is a sum of effects, but for noise; `l2` keeps 0.5 everywhere.

    One cell, ``more``, keeps 1 more.
    """
    rng = np.random.default_rng(0)
    found = []
    for head, a in HEAD.items():
        for size, b in SIZE.items():
            gain = 0.0 if (head, size) in flat else upgrade
            for seed in range(seeds):
                share = base + a + b + ((head, size) == more) + noise * rng.standard_normal()
                changed = {"new.head": head, "new.dim": size}
                values = {"bct": share, "l2": 0.5 + noise * rng.standard_normal()}
                for method, kept in {"independent": 0.0, **values}.items():
                    if (method, head, size, seed) not in skip:
                        found.append(make_record(
                            method, 0.4 + kept * gain, 0.4 + gain, seed, lower=0.4, changed=changed
                        ))  # fmt: skip
    return found


def test_planted_effects_are_found():
    found = fit(STUDY, records(), "cmc_at_1")
    assert (found.cells, found.without, found.seeds) == (6, 0, 6)
    by = {(e.method, e.factor): e for e in found.effects}
    head, size = by["bct", "head"], by["bct", "size"]
    for level, a in (("soft", -0.3), ("arc", 0.3)):
        assert head.shares[level].known == pytest.approx(0.2 + a, abs=0.03)
        assert head.shares[level].low <= head.shares[level].known <= head.shares[level].high
    assert [size.shares[n].known for n in ("8", "16", "32")] == pytest.approx(
        [-0.2, 0.3, 0.5], abs=0.03
    )
    assert head.matters and size.matters and head.p < 0.05
    assert (head.pays_from, size.pays_from) == (None, "16")
    assert not by["l2", "head"].matters and by["l2", "size"].pays_from == "8"


def test_effects_are_those_of_a_naive_regression():
    made = records(noise=0.1)
    found = fit(STUDY, made, "cmc_at_1")
    shares = {}
    for r in made:
        if r.method == "bct":
            cell = (r.changed["new.head"], r.changed["new.dim"])
            shares.setdefault(cell, []).append((r.scores["new/old"]["cmc_at_1"] - 0.4) / 0.3)
    cells = list(shares)
    x = np.array([[1, h == "arcface", d == 16, d == 32] for h, d in cells], float)
    y = np.clip([np.mean(shares[cell]) for cell in cells], -1, 1.5)
    beta, (left,) = np.linalg.lstsq(x, y, rcond=None)[:2]
    assert found.explained["bct"] == pytest.approx(1 - left / ((y - y.mean()) ** 2).sum())
    assert found.misfit["bct"] == pytest.approx(np.sqrt(left / (6 - 4)))
    by = {e.factor: e for e in found.effects if e.method == "bct"}
    means = {"soft": 0.0, "arc": beta[1]}
    middle = beta[0] + (beta[2] + beta[3]) / 3
    for level, effect in means.items():
        assert by["head"].shares[level].known == pytest.approx(middle + effect)
    of_soft = np.array([1, 0, 1 / 3, 1 / 3])
    deviation = np.sqrt(left / 2 * of_soft @ np.linalg.inv(x.T @ x) @ of_soft)
    assert by["head"].margins["soft"] == pytest.approx(stats.t.ppf(0.975, 2) * deviation)
    sizes = {"8": 0.0, "16": beta[2], "32": beta[3]}
    for level, effect in sizes.items():
        wanted = beta[0] + beta[1] / 2 + effect
        assert by["size"].shares[level].known == pytest.approx(wanted)


def test_cells_that_are_no_sum_of_effects_leave_it_unsure():
    """One cell stands out: seeds agree on it, and no additive model has it."""
    found = fit(STUDY, records(base=-0.1, more=("arcface", 32)), "cmc_at_1")
    by = {e.factor: e for e in found.effects if e.method == "bct"}
    assert by["head"].matters and not by["head"].surely
    assert by["head"].shares["arc"].is_above(0.0) and "arc" not in by["head"].sure_at
    said = tables.sentence(STUDY, found, "head")
    assert said.startswith("Head may matter: bct keeps most at arc")
    assert "For bct that is unsure: cells differ from the additive model by as much." in said
    said = tables.answer(STUDY, found)
    assert "By these seeds also" in said and "head, arc: bct" in said.split("By these seeds")[1]


def test_intervals_of_ten_seeds_hold_what_they_say():
    """95 % of them; of percentiles of draws some 90 % do."""
    rng = np.random.default_rng(0)
    design = _Design(STUDY, [("soft", "8"), ("arc", "16"), ("soft", "32"), ("arc", "8"),
                             ("soft", "16")], 10)  # fmt: skip
    held, of_draws = [], []
    for _ in range(1000):
        values = rng.standard_normal(10)
        draws = values[rng.integers(10, size=(300, 10))].mean(axis=1)
        span = design._over_seeds(np.array([values.mean(), *draws]))
        held.append(span.low <= 0 <= span.high)
        low, high = np.quantile(draws, [0.025, 0.975])
        of_draws.append(low <= 0 <= high)
        t = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        assert span.high - span.low == pytest.approx(t.high - t.low, rel=0.25)
    assert 0.93 < np.mean(held) < 0.97 and 0.88 < np.mean(of_draws) < 0.92


@pytest.mark.slow
def test_surely_is_corrected_for_all_levels_and_methods():
    """Ten methods that keep nothing: hardly any is called sure, though each is tried five times."""
    alarms = 0
    for run in range(40):
        rng = np.random.default_rng(run)
        made = [
            make_record(m, 0.4 + kept, 0.7, seed, lower=0.4,
                        changed={"new.head": head, "new.dim": size})
            for head in HEAD for size in SIZE for seed in range(6)
            for m, kept in [("independent", 0.0), *(
                (f"other-{k}", 0.3 * 0.1 * rng.standard_normal()) for k in range(10)
            )]
        ]  # fmt: skip
        found = fit(STUDY, made, "cmc_at_1")
        alarms += any(effect.sure_at for effect in found.effects)
    assert alarms <= 5  # 2 are expected at most; one level alone is above 0 in nearly every run


def test_records_of_the_model_alone_are_needed():
    with pytest.raises(AbsentError, match="expected records of independent in every cell"):
        fit(STUDY, [r for r in records() if r.method != "independent"], "cmc_at_1")


def test_a_control_is_no_method():
    renamed = [
        r.model_copy(update={"method": "raw-features"}) if r.method == "l2" else r
        for r in records(base=-0.9, upgrade=0.2)
    ]
    said = tables.answer(STUDY, fit(STUDY, renamed, "cmc_at_1"))
    assert "no method is surely above the old model at any level. The control surely is: " in said
    assert said.count("raw-features") == 5 and "bct" not in said


def test_a_factor_that_surely_matters_to_controls_alone_may_matter():
    made = [r for r in records(base=-0.1, more=("arcface", 32)) if r.method != "l2"]
    made += [
        r.model_copy(update={"method": "raw-features"}) for r in records() if r.method == "bct"
    ]
    found = fit(STUDY, made, "cmc_at_1")
    surely = [e.method for e in found.effects if e.factor == "head" and e.matters and e.surely]
    assert surely == ["raw-features"]
    assert tables.sentence(STUDY, found, "head").startswith("Head may matter: ")


def test_cells_without_an_upgrade_are_left_out_and_counted():
    found = fit(STUDY, records(flat={("softmax", 8)}), "cmc_at_1")
    assert (found.cells, found.without) == (5, 1)
    with pytest.raises(AbsentError, match="expected more cells than 4 effects, got as many"):
        fit(STUDY, records(flat={("softmax", 8), ("arcface", 16)}), "cmc_at_1")
    said = tables.summary(found)
    assert said.startswith("CMC@1: 5 cells of 6 seeds each")
    assert "1 more have no upgrade to keep. The additive model explains" in said
    with pytest.raises(AbsentError, match="size: 8: expected a cell with an upgrade"):
        fit(STUDY, records(flat={("softmax", 8), ("arcface", 8)}), "cmc_at_1")


def test_only_seeds_that_every_cell_has_count():
    found = fit(STUDY, records(skip={("bct", "arcface", 16, 2)}), "cmc_at_1")
    assert found.seeds == 5
    with pytest.raises(AbsentError, match="expected records of two seeds of every cell, got 1"):
        fit(STUDY, records(seeds=1), "cmc_at_1")
    with pytest.raises(AbsentError, match="got 0"):
        fit(STUDY, [], "cmc_at_1")


def test_cells_that_mix_effects_up_are_refused():
    made = [
        r for r in records()
        if (r.changed["new.head"] == "softmax") == (r.changed["new.dim"] == 8)
    ]  # fmt: skip
    with pytest.raises(AbsentError, match="expected cells that tell 4 effects apart, got 3"):
        fit(STUDY, made, "cmc_at_1")


def test_a_factor_is_one_sentence():
    found = fit(STUDY, records(noise=0.0), "cmc_at_1")
    assert tables.sentence(STUDY, found, "size") == (
        "Size matters: bct keeps most at 32 and least at 8. It was not found to matter by 20 "
        "points or more for l2. By these seeds above old/old at every level: l2. By these seeds "
        "above old/old from 16 on: bct."
    )
    assert tables.answer(STUDY, found) == (
        "By CMC@1, on average over the other settings, methods are surely above the old model only "
        "here. Head, soft: l2 50 (50 to 50) %; head, arc: bct 50 (50 to 50) %, l2 50 (50 to 50) %; "
        "size, 8: l2 50 (50 to 50) %; size, 16: bct 30 (30 to 30) %, l2 50 (50 to 50) %; "
        "size, 32: bct 50 (50 to 50) %, l2 50 (50 to 50) %."
    )
    found = fit(STUDY, records(noise=0.0, base=-0.9, upgrade=0.2), "cmc_at_1")
    assert tables.sentence(STUDY, found, "size").endswith("Not above old/old at 32: bct.")
    of_bct = replace(found, effects=[e for e in found.effects if e.method == "bct"])
    says = (
        "By CMC@1, on average over the other settings, no method is surely above the old model at "
        "any level."
    )
    assert tables.answer(STUDY, of_bct) == says


def test_the_command_prints_tables_and_draws(tmp_path):
    facts = json.loads(STUDY.model_dump_json())
    (tmp_path / FILE).write_text(yaml.safe_dump(facts))
    assert read_study(tmp_path) == STUDY
    for record in records():
        folder = tmp_path / "changed" / "-".join(map(str, record.changed.values()))
        place = record.protocol, record.track, record.method, record.seed
        write_record(record_path(folder, *place), record)
    code, out, err = call("factors", tmp_path, "--out", tmp_path / "out")
    assert code == 0 and "6 cells of 6 seeds each" in out, err
    assert "best - worst" in out and "Size matters: bct keeps most" in out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"factors-head-cmc_at_1.csv", "factors-size-cmc_at_1.svg"} <= names
    (tmp_path / FILE).write_text("track: glyphs")
    with pytest.raises(BenchError, match=r"study\.yaml"):
        read_study(tmp_path)


def test_the_committed_plan_tells_its_effects_apart():
    study, board = read_study(PAYS), read_core_board(PAYS / "board.yaml")
    cells = [
        tuple(f.level(make_record(changed=dict(b.set))) for f in study.factors.values())
        for b in board.boards
    ]
    assert None not in {level for cell in cells for level in cell}
    assert len({*cells}) == len(cells) == 50
    columns = [(i, a) for i, f in enumerate(study.factors.values()) for a in f.levels.values()]
    has = np.array([[cell[i] == level for cell in cells] for i, level in columns], int)
    together, alone = has @ has.T, has.sum(1)
    for (i, _), row, n in zip(columns, together, alone, strict=True):
        for (j, _), both, m in zip(columns, row, alone, strict=True):
            if i != j:  # levels of two factors meet as often as chance has it
                assert both == n * m / len(cells)
