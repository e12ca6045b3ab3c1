"""Scores while a gallery is backfilled: ends, invariances, flips, groups, templates."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from benchmark.data.toy import Toy
from benchmark.metrics.backfill_curves import moments
from benchmark.metrics.backfill_orders import Items, make_orders, squared_distance
from benchmark.metrics.identification import search, tpir_at_fpir
from benchmark.tasks.backfilling import Backfilling
from benchmark.tasks.base import BackfillState, template_vectors
from benchmark.tasks.identification import Identification
from benchmark.tasks.retrieval import Retrieval

OPTIONS = {"distance": "cosine", "fpir": (0.1,)}
NAMES = ("random", "class-by-class", "true-l2")


@pytest.fixture(scope="module")
def items():
    return Toy(classes=16, images=8, size=8).load(None).evaluations["test"]


@pytest.fixture(scope="module")
def state(items):
    """Old vectors of fewer dimensions, a rough conversion, good new vectors."""
    rng = np.random.default_rng(0)
    n = len(items.labels)
    new = rng.standard_normal((60, 8))[items.labels] + 0.8 * rng.standard_normal((n, 8))
    stored = new + rng.standard_normal((n, 8))
    old = new[:, :5] + 2 * rng.standard_normal((n, 5))
    return BackfillState(*(x.astype(np.float32) for x in (old, stored, new, new)))


def orders_of(state, items, names=NAMES):
    known = Items(items.ids, items.labels, 0, l2=squared_distance(state.stored, state.view))
    return make_orders(names, known)[0]


@pytest.fixture(scope="module")
def found(state, items):
    return Backfilling().evaluate(state, orders_of(state, items), items, OPTIONS)


def test_the_ends_are_the_cases_to_the_last_bit(state, items, found):
    for vectors, point in ((state.stored, 0), (state.new, -1)):
        expected = Retrieval().evaluate(state.view, vectors, items, OPTIONS).scores
        expected["tpir_at_fpir_1e-1"] = (
            Identification()
            .evaluate(state.view, vectors, items, OPTIONS)
            .scores["tpir_at_fpir_1e-1"]
        )
        for each in found["orders"].values():
            assert {m: curve[point] for m, curve in each["curves"].items()} == expected


def test_items_are_not_ranked_where_no_task_ranks_them(state, items, found):
    """IJB-C: 469,375 images, of which only templates are searched for."""
    options = {**OPTIONS, "tasks": ("identification", "backfilling")}
    alone = Backfilling().evaluate(state, orders_of(state, items), items, options)
    for name, each in alone["orders"].items():
        whole = found["orders"][name]
        assert set(each) == set(whole) and set(each["curves"]) == {"tpir_at_fpir_1e-1"}
        assert each["curves"].items() <= whole["curves"].items()
        assert each["area"].items() <= whole["area"].items() and each["tau"] == whole["tau"]
        assert each["flips"] == {"positive": [], "negative": []} and each["intervals"] == {}
    assert alone["offline"].items() <= found["offline"].items() and len(alone["offline"]) == 1


def test_offline_is_old_until_all_is_done(state, items, found):
    old, new = (
        Retrieval().evaluate(v, v, items, OPTIONS).scores
        | Identification().evaluate(v, v, items, OPTIONS).scores
        for v in (state.old, state.new)
    )
    assert set(found["offline"]) == set(found["orders"]["random"]["curves"])
    for name, each in found["offline"].items():
        assert (each["before"], each["after"]) == (old[name], new[name])
        assert each["area"] == pytest.approx((100 * old[name] + new[name]) / 101)


def test_an_update_that_changes_nothing_has_a_level_curve(state, items):
    same = dataclasses.replace(state, stored=state.new)
    each = Backfilling().evaluate(same, orders_of(state, items), items, OPTIONS)["orders"]["random"]
    for metric, curve in each["curves"].items():
        assert set(curve) == {curve[0]}
        assert each["area"][metric] == curve[0]
    assert set(each["flips"]["positive"]) == set(each["flips"]["negative"]) == {0.0}


def test_how_items_lie_does_not_matter(state, items, found):
    moved = np.random.default_rng(5).permutation(len(items.labels))
    back = np.argsort(moved)
    columns = {
        name: getattr(items, name)[moved]
        for name in ("images", "labels", "ids", "camera", "media", "group", "template")
    }
    other = dataclasses.replace(
        items, **columns, query=back[items.query], gallery=back[items.gallery]
    )
    rows = ("old", "stored", "view", "new")
    turned = BackfillState(*(getattr(state, name)[moved] for name in rows))
    again = Backfilling().evaluate(turned, orders_of(turned, other), other, OPTIONS)
    for name, each in found["orders"].items():
        for metric, curve in each["curves"].items():
            np.testing.assert_allclose(again["orders"][name]["curves"][metric], curve, atol=1e-12)


def test_flips_are_the_way_from_the_start(found):
    for each in found["orders"].values():
        curve = np.array(each["curves"]["cmc_at_1"])[:: found["every"]]
        up, down = (np.array(each["flips"][k]) for k in ("positive", "negative"))
        np.testing.assert_allclose(curve, curve[0] + up - down, atol=1e-12)


def test_tau_is_of_the_orders(found):
    assert found["orders"]["true-l2"]["tau"] == {}
    assert -1 <= found["orders"]["random"]["tau"]["true-l2"] <= 1


def test_an_order_agrees_with_its_own_score_and_not_with_the_reverse(state, items):
    truth = orders_of(state, items)["true-l2"]
    orders = {"same": truth, "reverse": truth[::-1].copy(), "true-l2": truth}
    found = Backfilling().evaluate(state, orders, items, OPTIONS)["orders"]
    assert found["same"]["tau"] == {"true-l2": 1.0}
    assert found["reverse"]["tau"] == {"true-l2": -1.0}


def test_groups_are_backfilled_early_or_late(state, items):
    first = np.argsort(items.group, kind="stable")
    found = Backfilling().evaluate(state, {"even first": first}, items, OPTIONS)
    groups = found["orders"]["even first"]["groups"]
    assert found["groups"] == ["even", "odd"]
    early, late = groups["share"]
    assert early > 0.7 > 0.3 > late
    assert max(groups["share_gap"]) == 1.0
    assert groups["share_gap"][0] == groups["share_gap"][-1] == 0.0


def test_a_template_is_backfilled_with_its_last_item(state, items):
    """Trap: half of a template's items in the new space would be added to the other half."""
    order = orders_of(state, items)["random"]
    place = np.argsort(order)
    curve = Backfilling().evaluate(state, {"random": order}, items, OPTIONS)["orders"]["random"]
    values = []
    for enrolled_here in items.galleries:
        last = np.array([place[items.template == t].max() for t in enrolled_here])
        done = np.argsort(np.argsort(last)) < moments(len(last))[0][40]
        probes, subject = template_vectors(state.new, items, items.probes)
        old, owner = template_vectors(state.stored, items, enrolled_here)
        new, _ = template_vectors(state.new, items, enrolled_here)
        mixed = np.where(done[:, None], new, old)
        (point,) = tpir_at_fpir(search(probes, subject, mixed, owner), [0.1])
        values.append(point.tpir)
    assert curve["curves"]["tpir_at_fpir_1e-1"][40] == pytest.approx(np.mean(values))
