"""Names of the stages of the core tracks, as digests; ``make stage-names`` writes them anew.

Long runs are kept by these names: what renames a stage makes it be computed again. Whoever means
to do so renews the file, in a change that says why.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

from benchmark.config import registry
from benchmark.config.files import digest
from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.overrides import expand
from benchmark.config.protocols import Protocol
from benchmark.config.tracks import Track
from benchmark.data import rendering
from benchmark.errors import UnsuitedError
from benchmark.harness.graph import Plan
from benchmark.harness.requests import Request

FILE = Path(__file__).parent.parent / "harness" / "stage_names.json"
TRACKS = ("glyphs", "omniglot", "cifar100-small", "cifar100-open")
# Every kind of stage: models, views, side-information, updates with a model and with a map alone.
METHODS = ("bct", "fastfill", "fct:simclr", "fct:simclr-other")
EVERY_METHOD_ON = "open-class"


def stage_names() -> dict[str, dict[str, str]]:
    """By protocol and track the stages of some methods; by method those on one protocol.

    Tracks are planned without their data, whose files, or pixels drawn by this machine's
    FreeType, are then no part of the names.
    """
    with patch.object(rendering, "ink_hash", lambda: "drawn"):
        return _stage_names()


def _stage_names() -> dict[str, dict[str, str]]:
    settings = [each for name in registry.protocol_files() for each in expand(load_protocol(name))]
    tracks = [load_track(name) for name in TRACKS]
    by_protocol = {
        f"{track.id} {setting.id}": _digest(plan)
        for track in tracks
        for setting in settings
        if (plan := _plan(METHODS, setting, track)) is not None
    }
    on = load_protocol(EVERY_METHOD_ON)
    by_method = {
        f"{track.id} {result.label}": digest([stage.name for stage in result.stages])[:16]
        for track in tracks
        for result in _planned(registry.method_files(), on, track).results
    }
    return {"protocols": by_protocol, "methods": by_method}


def _plan(methods: Iterable[str], protocol: Protocol, track: Track) -> Plan | None:
    try:
        return _planned(methods, protocol, track)
    except UnsuitedError:
        return None


def _planned(methods: Iterable[str], protocol: Protocol, track: Track) -> Plan:
    labels = ("independent", *methods)
    return Request(set_up(protocol, track, {}, labels), labels, (0,)).plan()


def _digest(plan: Plan) -> str:
    return digest(sorted(stage.name for stage in plan.stages))[:16]


if __name__ == "__main__":
    FILE.write_text(json.dumps(stage_names(), indent=1, sort_keys=True) + "\n")
