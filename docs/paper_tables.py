"""Tables and figures of the papers: commands that repeat them, and what these cost."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
import typer.main
from torch import nn

from benchmark.cli.app import app
from benchmark.config import registry
from benchmark.config.loading import load_track
from benchmark.config.reading import build, parse_settings, read_yaml
from benchmark.config.recipes import Recipe
from benchmark.config.seeds import parse_seeds
from benchmark.config.split_sizes import declared_sizes
from benchmark.config.sweep import parse_axes, points
from benchmark.config.tracks import Track
from benchmark.harness.cost import multiply_adds
from benchmark.harness.graph import Stage
from benchmark.harness.requests import Request, make_requests
from benchmark.harness.work import EmbeddingWork, SideWork, TrainingWork, UpdateWork
from benchmark.models.backbones import FACE_VITS, Encoder

FILE = Path(__file__).parent / "paper-tables.yaml"
TITLES = {
    "bct": "BCT (Shen et al., 2020)", "fct": "FCT (Ramanujan et al., 2022)",
    "bt2": "BT2 (Zhou et al., 2023)", "fastfill": "FastFill (Jaeckle et al., 2023)",
    "mixbct": "MixBCT (Liang et al.)",
}  # fmt: skip
GPUS = 8
RATE = 60e12
"""Operations a second of one GPU: a ResNet-50 in 16 bits at some 2,400 images a second."""
_GLOBAL_VIEWS, _LOCAL_AREA = 2, (96 / 224) ** 2


def entries() -> dict[str, list[dict[str, Any]]]:
    """The tables and figures of each paper, as the file has them."""
    return read_yaml(FILE)


def commands() -> list[str]:
    """Every command once, the words after ``bench run``."""
    lines = [line for rows in entries().values() for row in rows for line in row.get("run", ())]
    return list(dict.fromkeys(lines))


def parsed(command: str) -> dict[str, Any]:
    """The options of a command, as ``bench run`` itself reads them."""
    run = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    context = run.make_context("run", shlex.split(command))
    return dict(context.params)


def requests_of(command: str) -> list[Request]:
    """Request of a command, without the data."""
    options = parsed(command)
    settings = parse_settings(list(options["settings"] or ()))
    return [
        request
        for chosen in points(parse_axes(list(options["sweep"] or ())), settings)
        for request in make_requests(
            (options["methods"] or "independent").split(","), options["protocol"],
            options["track"], seeds=parse_seeds(options["seeds"]), settings=chosen,
            first_seed=options["first_seed"], without_data=True,
        )
    ]  # fmt: skip


def datasets_of(command: str) -> tuple[str, ...]:
    """Datasets that a command reads from folders: the track's, and that of another domain."""
    options = parsed(command)
    track = load_track(options["track"])
    dataset = registry.check_options(track.dataset, track.data, track.id)
    names = dataset.members or (track.dataset,)
    if "fct:simclr-other" in (options["methods"] or ""):
        names = (*names, str(track.other_domain["dataset"]))
    return names


def whole_command(command: str) -> str:
    """A command with its data's folders."""
    if "--dry-run" in command:
        return f"bench run {command}"
    names = datasets_of(command)
    roots = ",".join(f"{name}=DIR" for name in names) if len(names) > 1 else "DIR"
    return f"bench run {command} --data-root {roots}"


def hours(command: str) -> float:
    """Hours on the GPUs: operations of trainings and embeddings, each stage once.

    Convolutions and matrix products of the images' networks are counted, three times forward for
    a step of training; maps, text encoders, ranking and reading of files are not.
    """
    if "--dry-run" in command:
        return 0.0
    stages: dict[str, float] = {}
    for request in requests_of(command):
        track = request.setup.track
        for stage in request.plan().stages:
            stages[stage.name] = _operations(stage, track)
    return sum(stages.values()) / (GPUS * RATE) / 3600


def _operations(stage: Stage, track: Track) -> float:
    work = stage.work
    if isinstance(work, EmbeddingWork):
        n = track.facts.get("test_images", 0)
        if not isinstance(work.part, str):
            n = _images([work.part], track)
        return 2.0 * n * _forward(getattr(work.model.work, "spec", None), track)
    if not isinstance(work, TrainingWork):
        return 0.0
    recipe, seen = build(Recipe, work.recipe, "stage: recipe"), track
    if isinstance(work, SideWork) and work.other is not None:
        seen = load_track(work.other.work.dataset)
    n, forward = _images(work.splits, seen), _forward(work.spec, track)
    if isinstance(work, SideWork):
        crops = work.options.get("crops")
        views = 1.0 if crops is None else _GLOBAL_VIEWS + crops * _LOCAL_AREA
        return 6.0 * n * recipe.epochs * forward * views
    method = registry.method(work.method, work.config) if isinstance(work, UpdateWork) else None
    if method is not None and not method.own_model:
        if "gallery" not in method.changes:
            return 0.0
        own = (*work.models, work.independent, work.side_model, work.new_side_model)
        fits = recipe.map_steps(n) * recipe.transform_batch / n if n else 0
        epochs = fits if recipe.transform_views == "epoch" else 0
        models = (model for model in own if model is not None)
        return sum(2.0 * n * epochs * _forward(m.work.spec, track) for m in models)
    return 6.0 * n * recipe.epochs * forward


def _images(splits: Iterable[Mapping[str, Any]], track: Track) -> float:
    """Training images of splits, of which a later one counts whole if it holds the earlier ones."""
    total = 0.0
    for split in splits:
        facts = declared_sizes(track)
        whole = float(facts.get("train_images", 0))
        if split.get("groups") and track.dataset == "domains":
            whole = sum(load_track(name).facts["train_images"] for name in split["groups"])
        low, high = split["classes"]
        first, last = split["images"]
        total = max(total, whole * (high - low) * (last - first))
    return total


def _forward(spec: Mapping[str, Any] | None, track: Track) -> float:
    """Multiply-adds of an image; none of CLIP's towers, which are not trained."""
    if spec is None or str(spec["backbone"]).startswith("open_clip:"):
        return 0.0
    dataset: Any = registry.check_options(track.dataset, track.data, track.id)
    side = 224 if track.dataset == "domains" else getattr(dataset, "image_size", 32)
    size = (dataset.height, dataset.width) if hasattr(dataset, "height") else (side, side)
    return _of_network(str(spec["backbone"]), size, spec.get("input_size"), spec.get("last_stride"))


@cache
def _of_network(
    backbone: str, size: tuple[int, int], input_size: int | None, last_stride: int | None
) -> float:
    # Its attention leaves autocast, which there is none of without a device.
    with torch.device("cpu" if backbone in FACE_VITS else "meta"):
        encoder: nn.Module = Encoder(
            backbone, 128, 3, size[0], input_size=input_size, last_stride=last_stride or 2
        )
        return float(multiply_adds(encoder, torch.zeros(1, 3, *size))[0])


def table(paper: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Table or figure, what it shows, hours, whether it runs, and a command a line."""
    for row in entries()[paper]:
        runs = row.get("run", [])
        state = "runs" if runs else row.get("reason") or f"with {row['same']}"
        note = f"; {row['note']}" if "note" in row else ""
        first, *more = runs or [""]
        shown = f"`{whole_command(first)}`" if first else ""
        yield row["item"], row["shows"], _hours(first), state + note, shown
        for command in more:
            yield "", "", _hours(command), "runs", f"`{whole_command(command)}`"


def _hours(command: str) -> str:
    if not command:
        return ""
    found = hours(command)
    return "0" if not found else f"{found:.1f}" if found < 10 else f"{found:.0f}"
