"""Checks of all committed records together."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pytest

from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.overrides import expand
from benchmark.records.files import read_record

MEASURED = Path(__file__).parents[1] / "results" / "measured"
EVERYWHERE = ("independent", "bct", "l2", "mixbct", "bt2", "fct", "fastfill", "procrustes")


@pytest.fixture(scope="module")
def all_records():
    return [read_record(path) for path in sorted(MEASURED.glob("*/*/*/seed-*.json"))]


@pytest.fixture(scope="module")
def records(all_records):
    return [record for record in all_records if record.status == "done"]


def test_every_protocol_has_the_same_methods(all_records) -> None:
    wanted = set()
    for name in registry.protocol_files():
        protocol = load_protocol(name)
        wanted |= {(p.id, p.version, m) for p in expand(protocol) for m in EVERYWHERE}
    found = {
        (r.protocol, r.protocol_version, r.method)
        for r in all_records
        if (r.track, r.seed) == ("glyphs", 0)
    }
    assert len(wanted) > 400
    assert sorted(wanted - found) == []


def test_records_are_of_the_tracks_as_they_are(all_records) -> None:
    assert [r.key for r in all_records if r.track_version != load_track(r.track).version] == []


def test_each_says_what_its_training_cost(records) -> None:
    assert len(records) > 500
    # Published models that were trained on a device of another kind cost nothing that compares.
    trained = [r for r in records if not any(s.published for s in r.run.stages.values())]
    assert [r.key for r in trained if r.run.training_cost is None] == []


@pytest.mark.parametrize("method", ["bct", "l2", "mixbct"])
def test_a_loss_more_costs_little(records, method) -> None:
    costs = [r.run.training_cost for r in records if r.method.partition(":")[0] == method]
    assert len(costs) > 20
    # One training's time says as much of what else the machine did: the middle one of all.
    assert median(costs) <= 1.2


def test_all_methods_of_a_setting_have_the_same_precision(records) -> None:
    """Its numbers differ from another's by more than methods do."""
    found: dict[tuple[str, ...], set[str]] = {}
    for r in records:
        place = (r.protocol, r.track, str(r.seed))
        found.setdefault(place, set()).add(r.environment["precision"])
    assert {place: kinds for place, kinds in found.items() if len(kinds) > 1} == {}
