"""What is said of all committed records together."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark.record import read_record

MEASURED = Path(__file__).parents[1] / "results" / "measured"


@pytest.fixture(scope="module")
def records():
    found = [read_record(path) for path in sorted(MEASURED.glob("*/*/*/*.json"))]
    return [record for record in found if record.status == "done"]


def test_each_says_what_its_training_cost(records) -> None:
    assert len(records) > 500
    assert [r.key for r in records if r.run["training_cost"] is None] == []


@pytest.mark.parametrize("method", ["bct", "l2", "mixbct"])
def test_a_loss_more_costs_little(records, method) -> None:
    costs = [r.run["training_cost"] for r in records if r.method.partition(":")[0] == method]
    assert len(costs) > 20
    assert max(costs) <= 1.2


def test_all_methods_of_a_setting_have_the_same_precision(records) -> None:
    """Its numbers differ from another's by more than methods do."""
    found: dict[tuple[str, ...], set[str]] = {}
    for r in records:
        place = (r.protocol, r.track, str(r.seed))
        found.setdefault(place, set()).add(r.environment["precision"])
    assert {place: kinds for place, kinds in found.items() if len(kinds) > 1} == {}
