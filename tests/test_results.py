"""Checks of all committed records together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median

import pytest

from benchmark.config.loading import load_track
from benchmark.harness.core_board import read_core_board
from benchmark.records.files import read_record, read_value
from benchmark.records.layout import base_path, read_base
from benchmark.report.scenarios import networks_of
from benchmark.studies.claims import read_claims
from benchmark.studies.claims.language import EACH
from leaderboard.pages.front import QUESTIONS

MEASURED = Path(__file__).parents[1] / "results" / "measured"


@pytest.fixture(scope="module")
def all_records():
    """Path -> what its own file says: the rest is read where a question needs it."""
    return {path: read_value(path) for path in sorted(MEASURED.glob("*/*/*/seed-*.json"))}


@pytest.fixture(scope="module")
def records(all_records):
    return {path: value for path, value in all_records.items() if value["status"] == "done"}


Need = tuple[str, str, str]
"""Protocol, track and method; an empty one stands for any."""


def of_boards() -> Iterator[Need]:
    for name in ("core.yaml", "core-frozen.yaml", "others.yaml"):
        for unit in read_core_board(MEASURED.parent / name).units:
            yield from ((unit.protocol, unit.track, method) for method in unit.methods)


def of_claims() -> Iterator[Need]:
    parts = [part for claim in read_claims().claims.values() for part in claim.parts]
    for part, value in [(each, value) for each in parts for value in each.values()]:
        protocols = [value.protocol] if value.protocol else part.protocols
        tracks = [value.track] if value.track else part.tracks or [""]
        methods = part.methods if value.method == EACH else (value.method,)
        yield from product(protocols, tracks, methods)


def of_documents() -> Iterator[Need]:
    """Tables whose commands the documents name, and the boards that the first page links to."""
    for page in sorted((MEASURED.parents[1] / "docs").glob("*.md")):
        for command in re.findall(
            r"bench table results (-p \S+ -t \S+ .*-m \S+)", page.read_text()
        ):
            protocol, track, methods = re.search(r"-p (\S+) -t (\S+) .*-m (\S+)", command).groups()
            yield from ((protocol, track, method) for method in methods.split(","))
    yield from ((protocol, "glyphs", "") for _, protocol in QUESTIONS)


def test_every_record_of_small_networks_is_needed(all_records) -> None:
    """By a board, a claim, a table or the first page; the protocols themselves have smoke runs."""
    needs = {*of_boards(), *of_claims(), *of_documents()}
    every = {(r["protocol"], r["track"], r["method"]) for r in all_records.values()}
    here = {each for each in every if networks_of(each[1]) == "small"}
    wanted = {
        (protocol, track, method) for protocol, track, method in here
        if needs & {*product((protocol,), (track, ""), (method, ""))}
    }  # fmt: skip
    # Bounds and ends of the others are those of the independent model.
    wanted |= {(protocol, track, "independent") for protocol, track, _ in wanted}
    assert len(wanted) > 400
    assert sorted(here - wanted) == []


def test_records_are_of_the_tracks_as_they_are(all_records) -> None:
    versions = {(r["track"], r["track_version"]) for r in all_records.values()}
    assert versions == {(track, load_track(track).version) for track, _ in versions}


def test_each_says_what_its_training_cost(records) -> None:
    assert len(records) > 500
    unknown = [path for path, r in records.items() if r["run"].get("training_cost") is None]
    # Published models that were trained on a device of another kind cost nothing that compares.
    stages = {path: read_record(path).run.stages.values() for path in unknown}
    assert [path for path, of in stages.items() if not any(s.published for s in of)] == []


@pytest.mark.parametrize("method", ["bct", "l2", "mixbct"])
def test_a_loss_more_costs_little(records, method) -> None:
    mine = (r for r in records.values() if r["method"].partition(":")[0] == method)
    costs = [r["run"]["training_cost"] for r in mine]
    assert len(costs) > 20
    # One training's time says as much of what else the machine did: the middle one of all.
    assert median(costs) <= 1.2


def test_all_records_of_a_setting_have_the_same_networks_and_precision(records) -> None:
    """Numbers of others differ by more than methods do; seeds are compared, too."""
    found: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for path, r in records.items():
        base = read_base(base_path(path, r["base"])) if "base" in r else {}
        models = base.get("models", {}) | r.get("models", {})
        environment = base.get("environment", {}) | r.get("environment", {})
        networks = sorted(f"{name} {m['backbone']} {m['head']}" for name, m in models.items())
        kind = (environment["precision"], *networks)
        found.setdefault((r["protocol"], r["track"]), set()).add(kind)
    assert {place: kinds for place, kinds in found.items() if len(kinds) > 1} == {}
