"""Commands of the papers' tables are planned, and each kind of track runs, on small files."""

import json
import re
import shlex

import paper_tables
import pytest
from paper_tables import commands, datasets_of, entries
from support.small_sets import write_all
from typer.testing import CliRunner

from benchmark.api import run
from benchmark.cli.app import app
from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.registry import track_files
from benchmark.harness.execution import Compute


@pytest.fixture(scope="session")
def roots(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("small"))


def data_root(names, roots):
    if len(names) == 1:
        return str(roots[names[0]])
    return ",".join(f"{name}={roots[name]}" for name in names)


def planned(command, roots, tmp_path):
    if "modality" in command:
        pytest.importorskip("open_clip")
    names = datasets_of(command)
    words = [word for word in shlex.split(command) if word != "--dry-run"]
    words = ["run", *words, "--dry-run", "--data-root", data_root(names, roots)]
    return CliRunner().invoke(app, [*words, "--store", str(tmp_path / "s")])


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_every_command_is_planned_on_small_files(command, roots, tmp_path):
    result = planned(command, roots, tmp_path)
    assert result.exit_code == 0, result.output
    stages = [line for line in result.stdout.splitlines() if line.startswith(("to do", "stored"))]
    assert all(re.search(r"\[\w+-[0-9a-f]{24}\]$", line) for line in stages) and len(stages) > 3
    assert "left out" not in result.stdout, "a method of the table does not apply"


@pytest.mark.parametrize("paper", list(paper_tables.TITLES))
def test_the_first_command_of_each_paper_is_planned(paper, roots, tmp_path):
    command = next(row["run"][0] for row in entries()[paper] if "run" in row)
    result = planned(command, roots, tmp_path)
    assert result.exit_code == 0, result.output


def test_every_table_and_figure_is_there_once():
    """As many as the papers have; each runs, is part of another, or has a reason."""
    found = {}
    for paper, rows in entries().items():
        numbers = {"Table": [], "Figure": []}
        items = {row["item"] for row in rows}
        for row in rows:
            assert sum(key in row for key in ("run", "same", "reason")) == 1, row
            assert row.get("same", row["item"]) in items
            kind = ""
            for word in re.findall(r"[A-Z]\w+|\d+", row["item"]):
                if word.isdigit():
                    numbers[kind].append(int(word))
                else:
                    kind = word.removesuffix("s")
        found[paper] = {kind: sorted(each) for kind, each in numbers.items()}
    counts = {"bct": (9, 3), "fct": (14, 8), "bt2": (8, 3), "fastfill": (7, 15), "mixbct": (9, 6)}
    for paper, (tables, figures) in counts.items():
        assert found[paper]["Table"] == list(range(1, tables + 1)), paper
        assert found[paper]["Figure"] == list(range(1, figures + 1)), paper


def test_operations_of_a_training_by_hand():
    """100 epochs over ImageNet-500 and ImageNet-1k, and embeddings, of a ResNet-50 of 4.1 GMAC."""
    command = "-p dimension:size-x1 -t imagenet -m independent"
    forward = paper_tables._of_network("timm:resnet50", (224, 224), None, None)
    assert forward == pytest.approx(4.09e9, rel=0.01)
    trained = 1.5 * 1281167 * 100 * 6 * forward
    embedded = 2 * (50_000 + 1281167) * 2 * forward
    seconds = (trained + embedded) / (paper_tables.GPUS * paper_tables.RATE)
    assert paper_tables.hours(command) == pytest.approx(seconds / 3600, rel=1e-3)


FAST = {
    "recipe.epochs": 1, "recipe.batch_size": 16, "recipe.precision": "32-true",
    "recipe.warmup": 0.0, "recipe.lr": 0.01, "recipe.transform_steps": 3,
    "recipe.transform_batch": 16, "recipe.transform_views": 1, "recipe.side_epochs": 1,
    "recipe.simclr.batch_size": 16,
}  # fmt: skip
SMALL = {"data.image_size": 32}
RATES = {"track.far": [0.5], "track.fpir": [0.5]}
KINDS = {
    # Track: protocol, methods, settings.
    "imagenet": ("extended-class", "bct,fct:simclr", SMALL),
    "imagenet-bt2": ("extended-class", "bt2", SMALL),
    "places365": ("extended-class", "fct:simclr-other", SMALL | {
        "track.other_domain": {"dataset": "imagenet", "image_size": 32},
    }),
    "imagenet-places365": ("disjoint", "fct:simclr", {"data.options": {"image_size": 32}}),
    "vggface2": ("bias", "fastfill", SMALL | {
        "old.classes": [0.0, 1.0], "old.thinned": {"scarce": 0.5},
    }),
    "cifar100": ("extended-class", "bt2", {"new.input_size": 48}),
    "cifar100-fct": ("sequential-six", "fct", {}),
    "ms1mv3-ijbc": ("open-class", "mixbct", RATES | {
        "data.image_size": 36, "new.backbone": "vit-t",
    }),
    "imdbface-ijbc": ("data-share:random-50", "bct", SMALL | RATES),
    "market1501": ("market1501", "l2", {
        "data.height": 64, "data.width": 32, "recipe.batch_size": 8, "recipe.augment.erase": 1.0,
    }),
}  # fmt: skip
"""The papers' networks would take minutes; most are small ones here."""


def test_every_track_of_the_papers_is_run():
    named = {t: load_track(t) for t in track_files()}
    own = {
        t for t, track in named.items() if "of our own" in track.note or track.models["new"].frozen
    }
    own |= {"folder", "omniglot"}
    assert {t for t, track in named.items() if track.needs_root} - own == {*KINDS}


@pytest.mark.slow
@pytest.mark.parametrize("track", KINDS)
def test_each_kind_of_track_runs_to_the_end(track, roots, tmp_path):
    protocol, methods, changes = KINDS[track]
    chosen = load_track(track)
    dataset = registry.check_options(chosen.dataset, chosen.data, track)
    names = dataset.members or (chosen.dataset,)
    if "other" in methods:
        names = (*names, "imagenet")
    generations = [g.name for g in load_protocol(protocol.partition(":")[0]).generations]
    small = {f"{g}.backbone": "convnet-4" for g in generations}
    small |= {f"{g}.dim": 16 for g in generations}
    settings = FAST | small | changes
    records = run(
        methods.split(","), protocol, track, data_root=data_root(names, roots),
        settings=settings, store=tmp_path / "s", out=tmp_path / "o", compute=Compute("cpu"),
    )  # fmt: skip
    assert [r.status for r in records] == ["done"] * (1 + len(methods.split(",")))
    for record in records:
        assert all(record.scores.values()) and str(tmp_path) not in json.dumps(record.as_json())
