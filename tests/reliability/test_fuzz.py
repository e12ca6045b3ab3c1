"""Fuzzing with hypothesis: whatever a file holds, a parser takes it or refuses it in one line."""

from __future__ import annotations

import json
import os

import pytest
from support.detectors import Finding, findings
from support.fuzzing import targets
from support.isolated import Case

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("RELIABILITY_FUZZ_SECONDS", "60"))
"""For all parsers together."""


def test_fuzzing(forks, scratch, campaign):
    names = list(targets())
    one = campaign("fuzzing", f"files changed at random, {SECONDS:.0f} s in {len(names)} parsers")
    for name in names:
        left = SECONDS / len(names)
        before = scratch.state()
        args = (name, left, 20, str(scratch.out))
        child = forks.start(Case(args, "support.fuzzing:fuzz"), scratch)
        outcome = child.wait(left + 120.0)
        found = [f for f in findings(outcome, scratch, before, (0,), left + 120.0)
                 if f.kind != "escaped"]  # fmt: skip
        counts = {"tried": 1}
        if outcome.code == 0:
            counts = json.loads(outcome.out.decode().splitlines()[-1])
        else:
            lines = [x for x in outcome.errors.splitlines() if "Falsifying" in x or "content=" in x]
            found.append(Finding("wrong", f"{' '.join(lines)[:300]}"))
        one.add(name, found, **counts)
        for path in scratch.out.iterdir():
            path.rename(scratch.tmp / f"fuzzed-{name}-{path.name}")
    assert one.counts["tried"] > len(names) * SECONDS, "too few to say anything"
    assert 0 < one.counts["told"] < one.counts["tried"], "some are taken, some refused"
