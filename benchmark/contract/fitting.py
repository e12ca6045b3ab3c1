"""Fitting a map on plain arrays: validation that the harness does not need."""

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark.config import registry
from benchmark.config.reading import build
from benchmark.config.recipes import Recipe
from benchmark.contract.arrays import as_ids, as_vectors, require_direction, to_numpy
from benchmark.contract.conversion import PARTS, Conversion, Dims
from benchmark.contract.method import Method
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.training.device import Device, parse_device
from benchmark.training.loop import Trainer

RECIPE = Recipe(epochs=1)
"""The budget of the built-in tracks: 600 steps of 256 pairs."""


def make_pairs(method: Method, distance: str, chained: bool, **arrays: Any) -> Pairs:
    """Arrays or ``None`` as :class:`Pairs` for a method; a BenchError if it needs others."""
    name, given = _name(method), {k: v for k, v in arrays.items() if v is not None}
    needs_side = any(need.startswith("side:") for need in method.needs)
    takes_side = needs_side or any(f.name == "side" for f in dataclasses.fields(method))
    has_side, missing = "side" in given, {*method.needs} - given.keys()
    for refused, reason in (
        (
            distance not in ("cosine", "l2"),
            f"distance: expected cosine or l2, which serves dot, too, got {distance!r}",
        ),
        (needs_side and not has_side, f"side: {name} needs side-information here, got none"),
        (has_side and not takes_side, f"side: {name} has no use for side-information"),
        ("new_side" in given and not has_side, "new_side: expected together with side"),
        ("old_head" in missing, f"old_head: {name} needs the old classifier, got none"),
        (not {"old", "new"} <= given.keys(), "old, new: expected vectors by both models, got none"),
    ):
        if refused:
            raise BenchError(reason)
    readers: dict[str, Callable[[str, Any], Any]] = {
        "labels": _as_labels, "head": _as_head, "old_head": _as_head,
        **dict.fromkeys(("old", "new", "side", "new_side"), _as_tensor),
    }  # fmt: skip
    fields = {key: readers[key](key, value) for key, value in given.items()}
    if len(fields["old"]) < 2:
        raise BenchError(f"old: expected at least 2 pairs, got {len(fields['old'])}")
    pairs = Pairs(**fields, distance=distance, chained=chained)
    for key in ("old", "new"):
        require_direction(key, fields[key].numpy(), distance)
    return pairs


def check_same_items(old_ids: Sequence[Any] | None, new_ids: Sequence[Any] | None, n: int) -> None:
    """Raise a BenchError unless both models' ``n`` vectors are of the same items, in one order."""
    if old_ids is None and new_ids is None:
        return
    if old_ids is None or new_ids is None:
        missing = "old_ids" if old_ids is None else "new_ids"
        raise BenchError(f"{missing}: expected the ids of both models' items, got one's alone")
    old, new = as_ids("old_ids", old_ids), as_ids("new_ids", new_ids)
    if len(old) != len(new):
        raise BenchError(f"new_ids: expected {len(old)} as old_ids, got {len(new)}")
    if len(old) != n:
        raise BenchError(f"old_ids: expected {n} as old, got {len(old)}")
    for row, (a, b) in enumerate(zip(old, new, strict=True)):
        if a != b:
            plain = (x.item() if isinstance(x, np.generic) else x for x in (b, a))
            got = "got {!r} for {!r} in row {}".format(*plain, row)
            raise BenchError(f"new_ids: expected the order of old_ids, {got}")


def _as_tensor(name: str, values: Any) -> Tensor:
    return torch.from_numpy(np.array(as_vectors(name, values)))


def _as_head(name: str, value: Any) -> Head:
    """A frozen copy of a :class:`Head`, or a softmax one of ``[C, d]`` weights, or with biases."""
    if isinstance(value, Head):
        return copy.deepcopy(value).cpu().eval().requires_grad_(False)
    if isinstance(value, tuple) and len(value) != 2:
        raise BenchError(f"{name}: expected weights, or weights and biases, got {len(value)} parts")
    weight, bias = value if isinstance(value, tuple) else (value, None)
    rows = _as_tensor(name, weight)
    head = Head("softmax", rows.shape[1], range(len(rows)))
    with torch.no_grad():
        head.weight.copy_(rows)
        if bias is not None and head.bias is not None:
            shift = as_vectors(f"{name} bias", np.reshape(to_numpy(bias), (1, -1)), len(rows))
            head.bias.copy_(torch.from_numpy(shift[0].copy()))
    return head.eval().requires_grad_(False)


def _as_labels(name: str, values: Any) -> Tensor:
    try:
        labels = np.asarray(to_numpy(values))
    except ValueError as error:  # ragged
        raise BenchError(f"{name}: expected whole numbers [n], got lists of them") from error
    if labels.dtype.kind not in "iu":
        raise BenchError(f"{name}: expected whole numbers, got {labels.dtype}")
    return torch.from_numpy(labels.astype(np.int64))


def make_trainer(
    recipe: Recipe | Mapping[str, Any] | None, seed: int, device: str | Device,
    progress: Callable[[float], None] | None = None,
) -> Trainer:  # fmt: skip
    """The loop; by default in the budget of the built-in tracks, telling nobody of progress.

    A mapping has the fields of a recipe that are other than in that budget.
    """
    if isinstance(recipe, Mapping):
        recipe = build(Recipe, {**RECIPE.model_dump(mode="json"), **recipe}, "recipe")
    elif not isinstance(recipe, Recipe | None):
        raise BenchError(
            f"recipe: expected fields such as {{'transform_steps': 600}}, got {recipe!r:.60}"
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BenchError(f"seed: expected a whole number from 0, got {seed!r}")
    device = parse_device(device) if isinstance(device, str) else device
    tell = progress or (lambda share: None)
    return Trainer(recipe or RECIPE, seed, device, progress=tell, within=tell)


def make_conversion(method: Method, fitted: Fitted, pairs: Pairs) -> Conversion:
    """The fitted parts as a conversion that can be saved."""
    parts = {name: getattr(fitted, name) for name in PARTS}
    parts = {name: part.cpu().eval() for name, part in parts.items() if part is not None}
    dims = {"old": pairs.old.shape[1], "new": pairs.new.shape[1]}
    maps_side = False
    if pairs.side is not None:
        dims["side"], side = pairs.side.shape[1], pairs.side[:2]
        with torch.inference_mode():
            maps_side = "convert" in parts and parts["convert"](pairs.old[:2], side)[1] is not side
    return Conversion(
        _name(method), dataclasses.asdict(method), pairs.distance, Dims(**dims), maps_side, parts,
        fitted.curves,
    )  # fmt: skip


def _name(method: Method) -> str:
    """The id of a method that has one, else the name of its class."""
    module = type(method).__module__
    files = registry.method_files().values()
    return next((file.id for file in files if file.module == module), type(method).__name__)
