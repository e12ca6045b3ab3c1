"""Runs of the campaigns on the toy track: what they give undisturbed, and their stages."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.harness.graph import Plan, Stage
from benchmark.harness.requests import make_requests
from benchmark.records.files import find_records
from support.detectors import Finding
from support.isolated import Case, Forks, Outcome, Scratch

BACKFILL = """\
id: campaign
version: 1
title: Campaign
source: the campaigns of reliability
question: Two generations, scored and backfilled.
generations:
  - {name: old, classes: [0.0, 0.5]}
  - {name: new}
old_head: kept
tasks: [retrieval, verification, backfilling]
orders: [random, priority, entropy]
"""
QUICK = {"recipe.epochs": 1, "recipe.transform_steps": 5, "recipe.side_epochs": 1}


@dataclass(frozen=True)
class Run:
    """Arguments of the run."""

    methods: tuple[str, ...]
    protocol: str
    settings: Mapping[str, Any]
    store: Path

    def case(self, out: Path, clock: float = 0.0) -> Case:
        """The run as a case."""
        options = {
            "methods": list(self.methods), "protocol": self.protocol,
            "settings": dict(self.settings),
        }  # fmt: skip
        args = (options, str(out), str(self.store), clock)
        return Case(args, "support.jobs:toy_run", allowed=(self.store, out))

    def plan(self) -> Plan:
        """Its stages."""
        (request,) = make_requests(self.methods, self.protocol, "toy", settings=self.settings)
        return request.plan()

    def carry_out(
        self, forks: Forks, scratch: Scratch, out: Path, seconds: float = 300.0
    ) -> Outcome:
        """Run it to its end; an AssertionError if it does not end well."""
        outcome = forks.start(self.case(out), scratch).wait(seconds)
        assert outcome.code == 0 and not outcome.timed_out, outcome.errors[-2000:]
        return outcome


def results(out: Path) -> dict[str, dict[str, Any]]:
    """Content of the records below a folder, but for what two runs of the same work differ in."""
    return {
        str(stored.path.relative_to(out)): stored.record.result() for stored in find_records(out)
    }


def differences(
    out: Path, right: Mapping[str, Mapping[str, Any]], *, every: bool = True
) -> list[Finding]:
    """Records below a folder that say something else than the right ones, or are missing.

    Without ``every`` some of them may be missing, not all.
    """
    got = results(out)
    missing = right.keys() - got.keys() if every else set() if got else {"all"}
    found = [Finding("wrong", f"{name}: no record") for name in sorted(missing)]
    for name, value in got.items():
        known = right.get(name, {})
        if value != known:
            fields = [k for k in value if value[k] != known.get(k)]
            found.append(Finding("wrong", f"{name}: {', '.join(fields)}"))
    return found


def dependants(stage: Stage, plan: Plan) -> list[Stage]:
    """Stages of a plan that stand on a stage, directly or not."""
    return [
        other
        for other in plan.stages
        if other.name != stage.name and any(each.name == stage.name for each in other.walk())
    ]


def linked_copy(source: Path, target: Path) -> None:
    """A copy of a folder whose files are the same ones: replace them, never write into them."""
    for folder, _, names in os.walk(source):
        made = target / Path(folder).relative_to(source)
        made.mkdir(parents=True, exist_ok=True)
        for name in names:
            (made / name).hardlink_to(Path(folder, name))
