"""Campaigns: what they tried, and what they found, counted and kept as figures."""

from __future__ import annotations

import datetime
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.detectors import Finding
from support.isolated import HEAVY, LIGHT, Forks, Scratch

FIGURES = "RELIABILITY"
"""Environment variable: the folder where figures are written, if they are."""


class Campaign:
    """Counts of one campaign.

    ``tried`` counts what it did to the code, ``told`` what the code said of it as it should;
    the other counts are of findings, by kind.
    """

    def __init__(self, name: str, what: str, command: str) -> None:
        self.name, self.what, self.command = name, what, command
        self.counts: Counter[str] = Counter(tried=0)
        self.findings: list[str] = []
        self.seconds = 0.0

    def add(self, where: object, findings: Sequence[Finding] = (), **counts: int) -> None:
        """Count something tried, and what was found."""
        self.counts["tried"] += counts.pop("tried", 1)
        self.counts.update(counts)
        for finding in findings:
            self.counts[finding.kind] += 1
            self.findings.append(f"{where}: {finding}")

    def write(self, folder: Path) -> None:
        """Keep it as a figure of the documents."""
        from benchmark.records.provenance import code_version, hardware, packages

        code, versions = code_version(), packages()
        figure = {
            "campaign": self.name, "what": self.what, "command": self.command,
            "code": code.model_dump(), "date": datetime.date.today().isoformat(),
            "seconds": round(self.seconds),
            "counts": dict(sorted(self.counts.items())), "findings": sorted(self.findings)[:50],
            "packages": {name: versions[name] for name in ("python", "torch", "numpy")},
            "hardware": hardware(),
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(figure, indent=1) + "\n"
        (folder / f"{self.name}.json").write_text(text)


@pytest.fixture(scope="session")
def campaigns() -> dict[str, Campaign]:
    """By name; the tests of a parametrised one count together."""
    return {}


@pytest.fixture
def campaign(request, campaigns):
    """Begin a campaign, or go on with it; afterwards any finding of the test is a failure."""
    begun: list[Campaign] = []
    before: list[str] = []

    def begin(name: str, what: str) -> Campaign:
        command = f"pytest tests/reliability/{request.path.name}"
        one = campaigns.setdefault(name, Campaign(name, what, command))
        begun.append(one)
        before.extend(one.findings)
        return one

    started = time.monotonic()
    yield begin
    for one in begun:
        one.seconds += time.monotonic() - started
        if FIGURES in os.environ:
            one.write(Path(os.environ[FIGURES]))
        with request.config.pluginmanager.get_plugin(
            "capturemanager"
        ).global_and_fixture_disabled():
            sys.stderr.write(f"\n{one.name}: {dict(one.counts)}\n")
    found = [finding for one in begun for finding in one.findings[len(before) :]]
    shown = "\n".join(found[:200])
    assert not found, f"{len(found)} findings\n{shown}"


@pytest.fixture(scope="session")
def forks(request, tmp_path_factory):
    """The process that forks cases; with everything imported where slow tests are chosen."""
    slow = any(item.get_closest_marker("slow") for item in request.session.items)
    return Forks(HEAVY if slow else LIGHT, tmp_path_factory.mktemp("forks"))


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)
