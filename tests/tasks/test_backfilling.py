"""Scores while a gallery is refilled: the ends, what does not matter, flips, groups, templates."""

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
def refill(items):
    """Old vectors of fewer dimensions, a rough conversion, good new vectors."""
    rng = np.random.default_rng(0)
    n = len(items.labels)
    new = rng.standard_normal((60, 8))[items.labels] + 0.8 * rng.standard_normal((n, 8))
    stored = new + rng.standard_normal((n, 8))
    old = new[:, :5] + 2 * rng.standard_normal((n, 5))
    return BackfillState(*(x.astype(np.float32) for x in (old, stored, new, new)))


def made(refill, items, names=NAMES):
    known = Items(items.ids, items.labels, 0, l2=squared_distance(refill.stored, refill.view))
    return make_orders(names, known)[0]


@pytest.fixture(scope="module")
def found(refill, items):
    return Backfilling().evaluate(refill, made(refill, items), items, OPTIONS)


def test_the_ends_are_the_cases_to_the_last_bit(refill, items, found):
    for vectors, point in ((refill.stored, 0), (refill.new, -1)):
        wanted = Retrieval().evaluate(refill.view, vectors, items, OPTIONS).scores
        wanted["tpir_at_fpir_1e-1"] = (
            Identification()
            .evaluate(refill.view, vectors, items, OPTIONS)
            .scores["tpir_at_fpir_1e-1"]
        )
        for each in found["orders"].values():
            assert {m: curve[point] for m, curve in each["curves"].items()} == wanted


def test_items_are_not_ranked_where_no_task_ranks_them(refill, items, found):
    """IJB-C: 469,375 images, of which only templates are searched for."""
    options = {**OPTIONS, "tasks": ("identification", "backfilling")}
    alone = Backfilling().evaluate(refill, made(refill, items), items, options)
    for name, each in alone["orders"].items():
        whole = found["orders"][name]
        assert set(each) == set(whole) and set(each["curves"]) == {"tpir_at_fpir_1e-1"}
        assert each["curves"].items() <= whole["curves"].items()
        assert each["area"].items() <= whole["area"].items() and each["tau"] == whole["tau"]
        assert each["flips"] == {"positive": [], "negative": []} and each["intervals"] == {}
    assert alone["offline"].items() <= found["offline"].items() and len(alone["offline"]) == 1


def test_offline_is_old_until_all_is_done(refill, items, found):
    old, new = (
        Retrieval().evaluate(v, v, items, OPTIONS).scores
        | Identification().evaluate(v, v, items, OPTIONS).scores
        for v in (refill.old, refill.new)
    )
    assert set(found["offline"]) == set(found["orders"]["random"]["curves"])
    for name, each in found["offline"].items():
        assert (each["before"], each["after"]) == (old[name], new[name])
        assert each["area"] == pytest.approx((100 * old[name] + new[name]) / 101)


def test_an_update_that_changes_nothing_has_a_level_curve(refill, items):
    same = dataclasses.replace(refill, stored=refill.new)
    each = Backfilling().evaluate(same, made(refill, items), items, OPTIONS)["orders"]["random"]
    for metric, curve in each["curves"].items():
        assert set(curve) == {curve[0]}
        assert each["area"][metric] == curve[0]
    assert set(each["flips"]["positive"]) == set(each["flips"]["negative"]) == {0.0}


def test_how_items_lie_does_not_matter(refill, items, found):
    moved = np.random.default_rng(5).permutation(len(items.labels))
    back = np.argsort(moved)
    columns = {
        name: getattr(items, name)[moved]
        for name in ("images", "labels", "ids", "camera", "media", "group", "template")
    }
    other = dataclasses.replace(
        items, **columns, query=back[items.query], gallery=back[items.gallery]
    )
    turned = BackfillState(*(getattr(refill, f.name)[moved] for f in dataclasses.fields(refill)))
    again = Backfilling().evaluate(turned, made(turned, other), other, OPTIONS)
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


def test_an_order_agrees_with_its_own_score_and_not_with_the_reverse(refill, items):
    truth = made(refill, items)["true-l2"]
    orders = {"same": truth, "reverse": truth[::-1].copy(), "true-l2": truth}
    found = Backfilling().evaluate(refill, orders, items, OPTIONS)["orders"]
    assert found["same"]["tau"] == {"true-l2": 1.0}
    assert found["reverse"]["tau"] == {"true-l2": -1.0}


def test_groups_are_refilled_early_or_late(refill, items):
    first = np.argsort(items.group, kind="stable")
    found = Backfilling().evaluate(refill, {"even first": first}, items, OPTIONS)
    groups = found["orders"]["even first"]["groups"]
    assert found["groups"] == ["even", "odd"]
    early, late = groups["share"]
    assert early > 0.7 > 0.3 > late
    assert max(groups["share_gap"]) == 1.0
    assert groups["share_gap"][0] == groups["share_gap"][-1] == 0.0


def test_a_template_is_refilled_with_its_last_item(refill, items):
    """Trap: half of a template's items in the new space would be added to the other half."""
    order = made(refill, items)["random"]
    place = np.argsort(order)
    curve = Backfilling().evaluate(refill, {"random": order}, items, OPTIONS)["orders"]["random"]
    values = []
    for enrolled_here in items.galleries:
        last = np.array([place[items.template == t].max() for t in enrolled_here])
        done = np.argsort(np.argsort(last)) < moments(len(last))[0][40]
        probes, subject = template_vectors(refill.new, items, items.probes)
        old, owner = template_vectors(refill.stored, items, enrolled_here)
        new, _ = template_vectors(refill.new, items, enrolled_here)
        mixed = np.where(done[:, None], new, old)
        (point,) = tpir_at_fpir(search(probes, subject, mixed, owner), [0.1])
        values.append(point.tpir)
    assert curve["curves"]["tpir_at_fpir_1e-1"][40] == pytest.approx(np.mean(values))
