"""Chains of updates: three generations on the toy track, put together again from the store."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from support.made_stages import of_folders
from support.toy_runs import toy_and_plan

from benchmark.harness.evaluation.cases import build_cases
from benchmark.harness.requests import make_request as request
from benchmark.harness.store import VECTORS
from benchmark.models.module import Portable, load_module, save_module

METHODS = ["bct", "fct", "fct:simclr"]
SMALL = {
    "fct.width": 16, "data.classes": 16, "recipe.epochs": 1, "recipe.side_epochs": 1,
    "recipe.transform_steps": 20,
}  # fmt: skip
PAIRS = {"v1/v1", "v2/v1", "v2/v2", "v3/v1", "v3/v2", "v3/v3"}
CONVERTED = {"v1'/v1'", "v1''/v1''", "v2'/v2'"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run of three generations: records, stages by title, folder of a stage."""
    folder = tmp_path_factory.mktemp("chain")
    records, plan, store = toy_and_plan(METHODS, folder, "sequential", SMALL)
    return records, plan.stages, lambda stage: store.path(stage.name)


def titled(stages, title):
    return next(s for s in stages if s.title == f"{title} (seed 0)")


def test_every_pair_is_scored(done) -> None:
    records, _, _ = done
    assert set(records["independent"].scores) == PAIRS
    assert set(records["bct"].scores) == PAIRS
    for name in ("fct", "fct:simclr"):
        assert set(records[name].scores) == PAIRS | CONVERTED | {"v3/v1 direct"}
    for record in records.values():
        assert all(v is not None for s in record.scores.values() for v in s.values())


def test_the_newest_on_the_oldest_is_compared(done) -> None:
    """By the chain, not by what is direct or between."""
    for record in done[0].values():
        low, high = record.scores["v1/v1"], done[0]["independent"].scores["v3/v3"]
        assert record.bounds == {"lower": low, "upper": high}
        for metric, cross in record.scores["v3/v1"].items():
            assert record.compatible[metric] == (cross > low[metric])


def test_self_tests_are_the_independent_ones(done) -> None:
    records, _, _ = done
    for name in ("fct", "fct:simclr"):
        for case in ("v1/v1", "v2/v2", "v3/v3"):
            assert records[name].scores[case] == records["independent"].scores[case]
            assert records[name].counts[case] == records["independent"].counts[case]


def test_titles_tell_stages_of_one_record_apart(done) -> None:
    """Times, curves and checkpoints go by title."""
    records, stages, _ = done
    for label, record in records.items():
        evaluation = next(s for s in stages if s.title == f"evaluate {label} (seed 0)")
        bound = next(s for s in stages if s.title == "evaluate independent (seed 0)")
        mine = {s.name: s.title for e in (bound, evaluation) for s in e.walk()}
        assert len(set(mine.values())) == len(mine)
        assert len(record.as_json()["run"]["stages"]) == len(mine)
    curves = records["fct:simclr"].curves
    assert set(curves["fit fct:simclr v1-v2 (seed 0)"]) == {"map", "side"}
    assert set(curves["fit fct:simclr v2-v3 (seed 0)"]) == {"map"}
    assert set(curves["fit fct:simclr v1-v3 (seed 0)"]) == {"map"}


def test_an_update_needs_none_before_it(done) -> None:
    """Its pairs are fresh embeddings (FCT 4.4), so it can be fitted at the same time."""
    _, stages, _ = done
    for label in ("fct", "fct:simclr"):
        before = {s.title for s in titled(stages, f"fit {label} v2-v3").walk()}
        assert not {t for t in before if t.startswith(f"fit {label} v1")}


def test_each_generation_has_side_information_of_its_own(done) -> None:
    _, stages, folder = done
    first, second = (titled(stages, f"train side-information simclr of {v}") for v in ("v1", "v2"))
    assert first.work.splits != second.work.splits
    update, last = (titled(stages, f"fit fct:simclr {v}") for v in ("v1-v2", "v2-v3"))
    assert update.inputs["side"].inputs["model"] == first
    assert update.inputs["new_side"].inputs["model"] == second
    assert last.inputs["side"].inputs["model"] == second
    assert "new_side" not in last.inputs
    direct = titled(stages, "fit fct:simclr v1-v3")
    assert direct.inputs["side"].inputs["model"] == first and "new_side" not in direct.inputs
    n = [json.loads((folder(s) / "stage.json").read_text())["facts"]["dim"]
         for s in (update.inputs["side"], update.inputs["new_side"])]  # fmt: skip
    assert n == [128, 128]


def through(folder, vectors, side):
    """A stored conversion, called by itself."""
    part = load_module(folder / "convert.safetensors").eval()
    with torch.inference_mode():
        out = part(*(None if a is None else torch.from_numpy(a) for a in (vectors, side)))
    return [None if t is None else t.numpy() for t in out]


def cases_of(stages, folder, label):
    evaluation = titled(stages, f"evaluate {label}")
    inputs = {role: folder(stage) for role, stage in evaluation.inputs.items()}
    cases = {c.name: c for c in build_cases(evaluation.work.at(folder))}
    own = [np.load(inputs[f"vectors{i}"] / VECTORS) for i in range(3)]
    side = [
        np.load(inputs[f"side{i}"] / VECTORS) if f"side{i}" in inputs else None for i in range(2)
    ]
    return inputs, cases, own, side


@pytest.mark.parametrize("label", ["fct", "fct:simclr"])
def test_conversions_one_after_the_other(done, label) -> None:
    """h3(h2(o1, s1), g2(o1, s1)), h3(o2, s2), h13(o1, s1): each put together by hand."""
    _, stages, folder = done
    inputs, cases, own, side = cases_of(stages, folder, label)
    middle, carried = through(inputs["update1"], own[0], side[0])
    last, _ = through(inputs["update2"], middle, carried)
    native, _ = through(inputs["update2"], own[1], side[1])
    direct, _ = through(inputs["direct0-2"], own[0], side[0])
    expected = {
        "v2/v1": middle, "v3/v1": last, "v1''/v1''": last, "v3/v2": native, "v2'/v2'": native,
        "v3/v1 direct": direct,
    }  # fmt: skip
    for name, gallery in expected.items():
        np.testing.assert_allclose(cases[name].gallery, gallery, rtol=1e-3, atol=1e-5)
        asking = own[int(name[1]) - 1] if "'" not in name else gallery
        np.testing.assert_allclose(cases[name].query, asking, rtol=1e-3, atol=1e-5)
    # What the order, or the wrong generation, would give is something else.
    for other in (native, direct, through(inputs["update2"], own[0], side[0])[0]):
        assert np.abs(cases["v3/v1"].gallery - other).max() > 1e-3


def test_side_information_is_carried_along(done) -> None:
    """g2(o1, s1) stands for s2 and is not it, nor s1."""
    _, stages, folder = done
    inputs, _, own, side = cases_of(stages, folder, "fct:simclr")
    _, carried = through(inputs["update1"], own[0], side[0])
    assert carried.shape == side[1].shape
    assert np.abs(carried - side[1]).max() > 1e-3 and np.abs(carried - side[0]).max() > 1e-3


def test_fresh_and_converted_items_look_alike_to_the_next_map(done) -> None:
    """Toy models are normalised, so an item's length is nothing to h."""
    _, stages, folder = done
    inputs, _, own, side = cases_of(stages, folder, "fct:simclr")
    middle, _ = through(inputs["update1"], own[0], side[0])
    np.testing.assert_allclose(np.linalg.norm(middle, axis=1), 1.0, rtol=1e-5)
    once = through(inputs["update2"], own[1], side[1])[0]
    again = through(inputs["update2"], 3 * own[1], side[1])[0]
    np.testing.assert_allclose(once, again, rtol=1e-3, atol=1e-5)
    for role in ("update1", "direct0-2"):  # where all that is stored is fresh, lengths count
        once, again = (through(inputs[role], by * own[0], side[0])[0] for by in (1, 3))
        assert np.abs(once - again).max() > 1e-3


class Scale(Portable):
    """Multiplies what is stored; and what asks, where it is a view."""

    def __init__(self, by: list[float]) -> None:
        super().__init__()
        self.by = by

    def forward(self, vectors, *side):
        out = vectors * torch.tensor(self.by)
        return (out, *side) if side else out


def folders(tmp_path, n=3):
    rng = np.random.default_rng(0)
    inputs = {}
    for i in range(n):
        inputs[f"vectors{i}"] = tmp_path / f"vectors{i}"
        inputs[f"vectors{i}"].mkdir()
        np.save(inputs[f"vectors{i}"] / VECTORS, rng.standard_normal((4, 2)).astype(np.float32))
    return inputs, {"generations": [f"v{i + 1}" for i in range(n)]}


def part(tmp_path, role, name, by):
    (tmp_path / role).mkdir(exist_ok=True)
    save_module(Scale(by), tmp_path / role / f"{name}.safetensors")
    return tmp_path / role


def test_views_pass_back_through_the_chain(tmp_path) -> None:
    """A query of generation 3 on a gallery of 1 goes through view 3 and then view 2."""
    inputs, params = folders(tmp_path)
    for i, by in ((1, [2.0, 1.0]), (2, [1.0, 5.0])):
        inputs[f"update{i}"] = part(tmp_path, f"update{i}", "query_view", by)
    inputs["direct0-2"] = part(tmp_path, "direct0-2", "query_view", [7.0, 7.0])
    cases = {c.name: c for c in build_cases(of_folders(inputs, **params))}
    own = [np.load(inputs[f"vectors{i}"] / VECTORS) for i in range(3)]
    by = {
        "v3/v1": [2, 5],
        "v3/v2": [1, 5],
        "v2/v1": [2, 1],
        "v3/v3": [1, 1],
        "v3/v1 direct": [7, 7],
    }
    for name, factors in by.items():
        np.testing.assert_allclose(cases[name].query, own[int(name[1]) - 1] * factors)
        np.testing.assert_allclose(cases[name].gallery, own[int(name[4]) - 1])
    assert not [name for name in cases if "'" in name]


def test_both_assignments_of_a_direct_conversion(tmp_path) -> None:
    """A template of either model may come first (1:1 verification)."""
    inputs, params = folders(tmp_path)
    inputs["direct0-2"] = part(tmp_path, "direct0-2", "convert", [3.0, 3.0])
    cases = {c.name: c for c in build_cases(of_folders(inputs, **params))}
    one, other = cases["v3/v1 direct"], cases["v1/v3 direct"]
    assert (one.swapped, other.swapped) == (False, True)
    np.testing.assert_array_equal(one.query, other.gallery)
    np.testing.assert_array_equal(one.gallery, other.query)


def test_a_conversion_marks_what_it_has_changed_only(tmp_path) -> None:
    inputs, params = folders(tmp_path)
    inputs["update2"] = part(tmp_path, "update2", "convert", [3.0, 3.0])
    names = {c.name for c in build_cases(of_folders(inputs, **params)) if not c.swapped}
    assert names == PAIRS | {"v1''/v1''", "v2'/v2'"}


# --- the plan


def direct_of(label, **settings):
    plan = request([label], "sequential", "toy", settings=settings).plan()
    evaluation = next(r.evaluation for r in plan.results if r.label == label)
    return set(evaluation.work.direct)


@pytest.mark.parametrize(
    ("label", "settings", "expected"),
    [
        ("fct", {}, {(0, 2)}),
        ("fct", {"protocol.direct": False}, set()),
        ("bct", {}, set()),
        ("independent", {}, set()),
    ],
)
def test_direct_is_for_what_converts_and_only_where_asked(label, settings, expected) -> None:
    assert direct_of(label, **settings) == expected


def test_six_small_steps_of_appendix_h() -> None:
    asked = request(["fct:simclr"], "sequential-six", "toy")
    generations = asked.setup.protocol.generations
    assert [g.classes for g in generations] == [(0, x / 10) for x in (5, 6, 7, 8, 9, 10)]
    assert len({repr(m) for m in asked.setup.models}) == 1
    evaluation = asked.plan().results[-1].evaluation
    roles = [r for r in evaluation.inputs if not r.startswith("embed")]
    assert {f"update{i}" for i in range(1, 6)} <= set(roles)
    assert {f"side{i}" for i in range(5)} <= set(roles) and "side5" not in roles


def test_sequential_is_a_quarter_a_half_and_all_of_one_set_up() -> None:
    asked = request(["fct"], "sequential", "toy")
    assert [g.classes for g in asked.setup.protocol.generations] == [(0, 0.25), (0, 0.5), (0, 1)]
    assert len({repr(m) for m in asked.setup.models}) == 1
    assert asked.setup.protocol.old_head == "kept"
