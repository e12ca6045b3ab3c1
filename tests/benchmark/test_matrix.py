"""The plan of every protocol on every track, without any data; what does not suit, and why."""

import re

import pytest

from benchmark import registry
from benchmark.api import request
from benchmark.cli import main
from benchmark.errors import BenchError
from benchmark.setup import expand
from benchmark.sizes import size

PAPERS = ("cifar100", "imagenet", "places365", "vggface2", "ms1mv3-ijbc", "market1501")
METHODS = ["independent", "bct"]
PROTOCOLS = [s.id for name in registry.protocol_files() for s in expand(registry.protocol(name))]
REASONS = {
    "no templates": r"tasks\[\d+\]: \w+ needs templates, which dataset",
    "no cameras": r"tasks\[\d+\]: reidentification needs cameras, which dataset",
    "no texts": r"tasks\[\d+\]: text_retrieval needs texts, which dataset",
    "no group": r"track [\w-]+ has no group 'home'; it names none|has no group '\w+'",
    "no groups": r"has no groups$|tasks\[\d+\]: groups needs groups, which dataset",
    "no set": r"evaluation: part: dataset \w+ of track [\w-]+ has no evaluation set 'seen'",
    "no model": r"model: track [\w-]+ has no model '[\w-]+'",
}


def outcome(protocol, track):
    """``plan``, or the reason why there is none."""
    try:
        asked = request(METHODS, protocol, track, without_data=True)
        plan = asked.plan()
    except BenchError as error:
        text = str(error)
        assert "\n" not in text and re.match(r"[\w-]+\.yaml: ", text), text
        found = [name for name, pattern in REASONS.items() if re.search(pattern, text)]
        assert len(found) == 1, text
        return found[0]
    assert len(plan.results) == len(METHODS)
    assert any(result.evaluation is not None for result in plan.results[1:])
    assert all(result.reason for result in plan.results if result.evaluation is None)
    return "plan"


@pytest.fixture(scope="module")
def matrix():
    # Tracks that change glyphs serve what it serves.
    return {(p, t): outcome(p, t) for p in PROTOCOLS for t in ("glyphs", "omniglot", *PAPERS)}


def test_every_protocol_runs_on_glyphs(matrix):
    assert {p: matrix[p, "glyphs"] for p in PROTOCOLS} == dict.fromkeys(PROTOCOLS, "plan")


def test_every_papers_track_serves_its_papers_protocols(matrix):
    wanted = {
        "cifar100": ["extended-class", "arch-change:transformer", "modality", "backfill"],
        "imagenet": ["extended-class", "sequential", "sequential-six", "sequential-architectures",
                     "arch-change:family", "class-range", "unseen:half", "side-information",
                     "modality", "dimension:extra-8", "capacity:width-512", "backfill"],
        "places365": ["extended-class", "backfill", "side-information"],
        "vggface2": ["extended-class", "backfill", "bias", "side-information"],
        "ms1mv3-ijbc": ["extended-data", "extended-class", "open-data", "open-class", "ijbc-1v1",
                        "ijbc-1vn", "loss-change:relu", "arch-change:deeper-longer",
                        "sequential-identities"],
        "market1501": ["market1501", "extended-class"],
    }  # fmt: skip
    for track, protocols in wanted.items():
        assert {p: matrix[p, track] for p in protocols} == dict.fromkeys(protocols, "plan"), track


def test_what_does_not_suit_is_refused_for_its_own_reason(matrix):
    assert matrix["market1501", "imagenet"] == "no cameras"
    assert matrix["ijbc-1v1", "market1501"] == "no templates"
    assert matrix["modality", "vggface2"] == "no texts"
    assert matrix["out-of-domain:away", "imagenet"] == "no group"
    assert matrix["class-range", "vggface2"] == "no set"
    assert matrix["arch-change:transformer", "market1501"] == "no model"


@pytest.mark.parametrize(
    ("track", "protocol", "old"),
    [
        ("imagenet", "extended-class", 500), ("places365", "extended-class", 182),
        ("vggface2", "extended-class", 863), ("cifar100", "extended-class", 50),
        ("ms1mv3-ijbc", "open-class", 28029), ("imagenet", "sequential", 250),
    ],
)  # fmt: skip
def test_published_numbers_of_classes(track, protocol, old):
    setup = request(["bct"], protocol, track, without_data=True).setup
    assert size(setup.protocol.generations[0], setup.track.facts).classes == old
    assert setup.protocol.order == "dataset"


def test_the_command_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as end:
        main(["run", "-m", "bct", "-p", "extended-class", "-t", "imagenet", "--dry-run",
              "--store", str(tmp_path)])  # fmt: skip
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert "500 of 1,000 classes, about 640,584 of 1,281,167 images" in out
    assert "to do   train old model (seed 0)\n" in out and "give --data-root" in out
    with pytest.raises(SystemExit) as end:
        main(["run", "-m", "bct", "-p", "market1501", "-t", "imagenet", "--dry-run"])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("bench: market1501.yaml: tasks[0]: reidentification needs cameras")
    with pytest.raises(SystemExit):
        main(["run", "-m", "bct", "-p", "extended-class", "-t", "imagenet"])
    assert "needs --data-root" in capsys.readouterr().err
