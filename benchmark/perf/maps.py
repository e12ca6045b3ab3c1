"""A bare loop of FCT's map, and whole fits of FCT and FastFill, by the core tracks' recipes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from benchmark.config.loading import load_track
from benchmark.config.recipes import Recipe
from benchmark.config.registry import method
from benchmark.harness.core_board import read_core_board
from benchmark.models.transformation import Transformation
from benchmark.perf import measure
from benchmark.training.device import effective_precision

ROUNDS = 1  # a fit is hundreds of steps already
_BARE = "bare loop"


class _Budget(NamedTuple):
    """All that a fit's time depends on; tracks may share it."""

    old: int
    new: int
    steps: int
    batch: int
    precision: str


def rows(items: int = 8192, classes: int = 100) -> list[dict[str, Any]]:
    """Time fits on random pairs of vectors; see ``benchmark.perf.run``.

    Once as the tracks' recipes have it, and once in the precision of the core board where that is
    another. ``size`` has the budget, and the tracks where not all of them share it.
    """
    out, budgets = [], _budgets(items)
    every = {track for tracks in budgets.values() for track in tracks}
    for budget, tracks in budgets.items():
        whose = "all core tracks" if set(tracks) == every else ", ".join(tracks)
        size = f"{budget.steps} x {budget.batch} pairs, {budget.precision}, {whose}"
        for call in _calls(budget._replace(steps=1), items, classes).values():
            call()
        timings = measure.together(_calls(budget, items, classes), ROUNDS)
        out += measure.rows(timings, size, _BARE)
    return out


def _budgets(items: int) -> dict[_Budget, list[str]]:
    """Those of the core board's tracks, with the tracks of each."""
    board = read_core_board()
    found: dict[_Budget, list[str]] = {}
    for name in dict.fromkeys(unit.track for unit in board.units):
        track = load_track(name)
        recipe, dims = track.recipe.lengthened(), (track.models["old"].dim, track.models["new"].dim)
        size = *dims, recipe.map_steps(items), recipe.transform_batch
        asked = (recipe.precision, board.precision)
        for precision in dict.fromkeys(effective_precision(each, "cpu") for each in asked):
            found.setdefault(_Budget(*size, precision), []).append(name)
    return found


def _calls(budget: _Budget, items: int, classes: int) -> dict[str, Callable[[], object]]:
    rng = np.random.default_rng(0)
    old, new, head = (
        rng.standard_normal(shape, dtype=np.float32)
        for shape in ((items, budget.old), (items, budget.new), (classes, budget.new))
    )
    labels = np.arange(items) % classes
    recipe = Recipe.model_validate({
        "epochs": 1, "transform_steps": budget.steps, "transform_batch": budget.batch,
        "precision": budget.precision,
    })  # fmt: skip
    return {
        _BARE: lambda: _bare(torch.from_numpy(old), torch.from_numpy(new), budget),
        "fct": lambda: method("fct").fit(old, new, recipe=recipe, device="cpu"),
        "fastfill": lambda: method("fastfill").fit(
            old, new, labels, head=head, recipe=recipe, device="cpu"
        ),
    }


def _bare(old: torch.Tensor, new: torch.Tensor, budget: _Budget) -> None:
    """The work of a script of a few lines: Adam as PyTorch has it, no checkpoints, no contract."""
    network = Transformation(budget.old, 0, budget.new, 2048, normalise=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4, weight_decay=2.0**-15)
    new, mixed = F.normalize(new), budget.precision == "bf16-mixed"
    rng = torch.Generator().manual_seed(0)
    for _ in range(budget.steps):
        rows = torch.randint(len(old), (budget.batch,), generator=rng)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            out, _ = network(old[rows], None)
        loss = (out.float() - new[rows]).square().sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
