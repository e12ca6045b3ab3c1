"""Fitting a map on plain arrays: what a harness would know is checked here instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark.config import registry
from benchmark.config.recipes import Recipe
from benchmark.contract.conversion import PARTS, Conversion, Dims, checked, ids_of
from benchmark.contract.method import Method
from benchmark.contract.pairs import Fitted, Pairs
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.training.device import Device, parse_device
from benchmark.training.loop import Trainer

RECIPE = Recipe(epochs=1)
"""The budget of the built-in tracks: 600 steps of 256 pairs."""


def make_pairs(
    method: Method, old: Any, new: Any, labels: Any, side: Any, head: Any,
    distance: str, new_side: Any, old_head: Any, chained: bool,
) -> Pairs:  # fmt: skip
    """Arrays as pairs of tensors.

    Raises:
        BenchError: If they do not belong together, or the method needs more.
    """
    if distance not in ("cosine", "l2"):
        raise BenchError(f"distance: expected 'cosine' or 'l2', got {distance!r}")
    name = method_name(method)
    if side is None and any(need.startswith("side:") for need in method.needs):
        raise BenchError(f"side: {name} with these parameters needs side-information, got none")
    if side is not None and not _takes_side(method):
        raise BenchError(f"side: {name} has no use for side-information")
    if new_side is not None and side is None:
        raise BenchError("new_side: expected together with side, got it alone")
    if old_head is None and "old_head" in method.needs:
        raise BenchError(f"old_head: {name} needs the old classifier, got none")
    made = {
        key: None if value is None else torch.from_numpy(np.array(checked(key, value)))
        for key, value in {"old": old, "new": new, "side": side, "new_side": new_side}.items()
    }
    if made["old"] is None or made["new"] is None:
        raise BenchError("old, new: expected vectors of the same items by both models, got none")
    if len(made["old"]) < 2:
        raise BenchError(f"old: expected at least 2 pairs, got {len(made['old'])}")
    classifier = None if head is None else as_head("head", head)
    return Pairs(
        old=made["old"], new=made["new"], side=made["side"], new_side=made["new_side"],
        labels=None if labels is None else _labels(labels, classifier), head=classifier,
        distance=distance, old_head=None if old_head is None else as_head("old_head", old_head),
        chained=chained,
    )  # fmt: skip


def same_items(old_ids: Sequence[Any] | None, new_ids: Sequence[Any] | None) -> None:
    """Raise a BenchError unless both models' vectors are of the same items in the same order."""
    if old_ids is None and new_ids is None:
        return
    if old_ids is None or new_ids is None:
        missing = "old_ids" if old_ids is None else "new_ids"
        raise BenchError(f"{missing}: expected the ids of both models' items, got one's alone")
    left, right = ids_of("old_ids", old_ids), ids_of("new_ids", new_ids)
    if len(left) != len(right):
        raise BenchError(f"new_ids: expected {len(left)} as old_ids, got {len(right)}")
    for row, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b:
            raise BenchError(
                f"new_ids: expected the order of old_ids, got {b!r} for {a!r} in row {row}"
            )


def as_head(name: str, value: Any) -> Head:
    """A classifier, frozen: a :class:`Head`, ``[C, d]`` weights, or a pair with ``[C]`` biases.

    Bare weights are those of a softmax classifier, which reads the lengths of vectors.
    """
    if isinstance(value, Head):
        own = type(value)(**value.made_with)
        own.load_state_dict(value.state_dict())
        return own.eval().requires_grad_(False)
    if isinstance(value, tuple) and len(value) != 2:
        raise BenchError(f"{name}: expected weights, or weights and biases, got {len(value)} parts")
    weight, bias = value if isinstance(value, tuple) else (value, None)
    rows = torch.from_numpy(np.array(checked(name, weight)))
    made = Head("softmax", rows.shape[1], list(range(len(rows))))
    with torch.no_grad():
        made.weight.copy_(rows)
        if bias is not None and made.bias is not None:
            shift = checked(f"{name} bias", np.reshape(_plain(bias), (1, -1)), len(rows))[0]
            made.bias.copy_(torch.from_numpy(shift))
    return made.eval().requires_grad_(False)


def make_trainer(recipe: Recipe | None, seed: int, device: str | Device) -> Trainer:
    """The loop that a harness would hand over."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BenchError(f"seed: expected a whole number from 0, got {seed!r}")
    if isinstance(device, str):
        device = parse_device(device)
    return Trainer(recipe or RECIPE, seed, device)


def make_conversion(method: Method, fitted: Fitted, pairs: Pairs) -> Conversion:
    """What was fitted, as something to keep."""
    parts = {name: getattr(fitted, name) for name in PARTS}
    found = {name: part.cpu().eval() for name, part in parts.items() if part is not None}
    return Conversion(
        method_name(method), dataclasses.asdict(method), pairs.distance,
        Dims(pairs.old.shape[1], pairs.new.shape[1], _size(pairs.side)),
        _maps_side(found.get("convert"), pairs), found, fitted.curves,
    )  # fmt: skip


def method_name(method: Method) -> str:
    """The id of a method that has one, else the name of its class."""
    module = type(method).__module__
    files = registry.method_files().values()
    return next((file.id for file in files if file.module == module), type(method).__name__)


def _takes_side(method: Method) -> bool:
    """Has it a parameter ``side``, or does it always need some?"""
    named = any(field.name == "side" for field in dataclasses.fields(method))
    return named or any(need.startswith("side:") for need in method.needs)


def _maps_side(convert: Any, pairs: Pairs) -> bool:
    if convert is None or pairs.side is None:
        return False
    side = pairs.side[:2]
    with torch.inference_mode():
        return convert(pairs.old[:2], side)[1] is not side


def _size(side: Tensor | None) -> int:
    return 0 if side is None else side.shape[1]


def _labels(values: Any, head: Head | None) -> Tensor:
    try:
        made = np.asarray(_plain(values))
    except ValueError as error:  # ragged
        raise BenchError("labels: expected whole numbers [n], got lists of them") from error
    if made.dtype.kind not in "iu":
        raise BenchError(f"labels: expected whole numbers, got {made.dtype}")
    if made.size and made.min() < 0:
        raise BenchError(f"labels: expected rows of the classifier from 0, got {made.min()}")
    if head is not None and made.size and made.max() >= len(head.classes):
        raise BenchError(
            f"labels: expected rows of the classifier below {len(head.classes)}, got {made.max()}"
        )
    return torch.from_numpy(made.astype(np.int64))


def _plain(values: Any) -> Any:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
