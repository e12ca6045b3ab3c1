"""What an update gave, held to what its adapter declares: sizes, finite numbers, parts, cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.config.declarations import MethodDeclaration
from benchmark.config.recipes import ModelSpec
from benchmark.contract.arrays import apply
from benchmark.contract.conversion import PARTS
from benchmark.data.base import Images
from benchmark.errors import BenchError
from benchmark.harness.artifacts import Stored
from benchmark.harness.cost import multiply_adds
from benchmark.models.backbones import Encoder
from benchmark.models.module import Portable, load_module
from benchmark.training.embedding import embed

Vectors = NDArray[np.float32]
_SOME = 48
"""Items that are tried one by one."""
_TOLERANCE = 1e-4
"""Of the largest number: sums of float32 in another order differ by less."""
_FEW = 64
"""Numbers beside its parameters that any part may hold."""


@dataclass(frozen=True)
class Given:
    """What an update gave, and the embeddings that it is tried on.

    Attributes:
        method: Its adapter.
        spec: The new model as the track has it.
        folder: Output of the update's stage.
        model: File of the new model.
        old_model: File of the old one.
        stored: What the gallery keeps by the old model, before the update.
        new: Embeddings of the same items by the new model, ``[n, d]``.
        images: The items.
    """

    method: MethodDeclaration
    spec: ModelSpec
    folder: Path
    model: Path
    old_model: Path
    stored: Stored
    new: Vectors
    images: Images

    def parts(self) -> dict[str, Portable]:
        """Its conversion, query view and priority, as far as it has them."""
        paths = {name: self.folder / f"{name}.safetensors" for name in PARTS}
        return {name: load_module(path) for name, path in paths.items() if path.exists()}

    def inputs(self, part: str) -> tuple[Any, ...]:
        """What a part is applied to."""
        return (self.new,) if part == "query_view" else self.stored

    def outputs(self) -> dict[str, tuple[Vectors, ...]]:
        """What each part gives; the new embeddings too."""
        found: dict[str, tuple[Vectors, ...]] = {"new model": (self.new,)}
        for name, part in self.parts().items():
            out = apply(part, *self.inputs(name))
            found[name] = tuple(
                v for v in (out if isinstance(out, tuple) else (out,)) if v is not None
            )
        return found


def check_parts(given: Given) -> None:
    """Every check of this module.

    Raises:
        BenchError: Naming the first fault.
    """
    outputs = given.outputs()
    check_finite(outputs)
    check_sizes(given, outputs)
    check_changes(given)
    check_each_alone(given)
    check_cost(given)


def check_finite(outputs: Mapping[str, Sequence[Vectors]]) -> None:
    """Refuse NaN and infinity."""
    for name, arrays in outputs.items():
        for array in arrays:
            wrong = int((~np.isfinite(array)).any(axis=tuple(range(1, array.ndim))).sum())
            if wrong:
                raise BenchError(
                    f"not finite: {name} gives NaN or infinity for {wrong} of {len(array)} items"
                )


def check_sizes(given: Given, outputs: Mapping[str, Sequence[Vectors]]) -> None:
    """Refuse embeddings of another size than declared, and those that cannot be compared."""
    n, changes = len(given.new), given.method.changes
    rows = {name: len(array) for name, arrays in outputs.items() for array in arrays}
    for name, found in rows.items():
        if found != n:
            raise BenchError(f"wrong size: {name} gives {found} rows for {n} items")
    dim = given.new.shape[1]
    if dim != given.spec.dim and "dimension" not in changes:
        raise BenchError(
            f"wrong size: the new model gives {dim} dimensions, the track asks for "
            f"{given.spec.dim}, and 'dimension' is not among changes"
        )
    gallery = outputs.get("convert", (given.stored[0],))[0]
    queries = outputs.get("query_view", (given.new,))[0]
    if changes and queries.shape[1:] != gallery.shape[1:]:
        raise BenchError(
            f"wrong size: new queries have {list(queries.shape[1:])}, items of the gallery after "
            f"the update {list(gallery.shape[1:])}: they cannot be compared"
        )
    if "priority" in outputs and outputs["priority"][0].shape != (n,):
        shape = list(outputs["priority"][0].shape)
        raise BenchError(f"wrong size: priority: expected a number an item, [{n}], got {shape}")


def check_changes(given: Given) -> None:
    """Refuse a gallery or queries that change, or do not, against what the adapter declares."""
    parts, changes = given.parts(), given.method.changes
    # What only cuts a longer embedding is a part of that.
    declared = {
        "convert": ("gallery", {"gallery"}), "query_view": ("queries", {"queries", "dimension"})
    }  # fmt: skip
    for part, (word, enough) in declared.items():
        if part in parts and not enough & {*changes}:
            what = "stored gallery" if word == "gallery" else "new queries"
            raise BenchError(
                f"undeclared change of the {word}: the update maps the {what} ({part}), and "
                f"'{word}' is not among changes: {', '.join(changes) or 'none'}"
            )
        if word in changes and part not in parts:
            raise BenchError(
                f"change of the {word} that is declared and not made: the update has no {part}"
            )


def check_each_alone(given: Given) -> None:
    """Refuse a part, or a model, whose output for an item depends on the items beside it."""
    for name, part in given.parts().items():
        arrays = tuple(None if a is None else a[:_SOME] for a in given.inputs(name))

        def output(rows: Any, part: Portable = part, arrays: Any = arrays) -> Vectors:
            out = apply(part, *(None if a is None else a[rows] for a in arrays))
            return out[0] if isinstance(out, tuple) else out

        _compare({"convert": "conversion"}.get(name, name.replace("_", " ")), output)
    model, images = load_module(given.model), given.images[np.arange(_few(given.images))]
    _compare("new model", lambda rows: embed(model, images[rows], torch.device("cpu")), len(images))


def _few(images: Images) -> int:
    return min(_SOME, images.shape[0])


def _compare(name: str, output: Callable[[Any], Vectors], n: int = _SOME) -> None:
    """Compare what items get together with what they get in another order, by halves, alone."""
    together = output(np.arange(n))
    n = len(together)
    scale = _TOLERANCE * float(np.abs(together).max(initial=1e-12))
    for words, groups in _groupings(n):
        for rows in groups:
            apart = float(np.abs(output(rows) - together[rows]).max())
            if apart > scale:
                raise BenchError(
                    f"{name} depends on the {words}: an item gets numbers {apart:.2g} apart"
                )


def _groupings(n: int) -> Iterator[tuple[str, list[NDArray[np.int64]]]]:
    order = np.random.default_rng(0).permutation(n)
    yield "order of the items", [order]
    yield "batch", np.array_split(np.arange(n), 2)
    yield "batch", [np.array([row]) for row in order[:8]]


def check_cost(given: Given) -> None:
    """Refuse work that the record would not count, or that the adapter declares it does not do."""
    _check_hidden_numbers(given)
    old, new, shape = load_module(given.old_model), load_module(given.model), given.images.shape[1:]
    alone = Encoder(given.spec.backbone, given.spec.dim, shape[0], shape[1])
    before, made, planned = (_embedding_work(model, shape) for model in (old, new, alone))
    if given.method.runs_old_model or made < planned + before / 2:
        return
    if _share_within(old, new) > 0.5:
        raise BenchError(
            f"declared cost that is not true: the new model takes {made:,} multiply-adds an image, "
            f"the track's own {planned:,}, as the old model runs inside: declare runs_old_model"
        )


def _share_within(old: Portable, new: Portable) -> float:
    """Share of a model's numbers that another holds too, tensor by tensor."""
    held = {tensor.numpy().tobytes() for tensor in new.state_dict().values()}
    sizes = {
        name: (tensor.numel(), tensor.numpy().tobytes() in held)
        for name, tensor in old.state_dict().items()
    }
    return sum(n for n, within in sizes.values() if within) / sum(n for n, _ in sizes.values())


def _check_hidden_numbers(given: Given) -> None:
    files = {"new model": load_module(given.model), **given.parts()}
    for name, part in files.items():
        counted = sum(p.numel() for p in part.parameters())
        held = sum(t.numel() for t in part.state_dict().values()) + _numbers(part.arguments)
        if held > 2 * counted + _FEW:
            raise BenchError(
                f"declared cost that is not true: {name} has {counted:,} parameters and holds "
                f"{held:,} numbers; what is learned must be parameters, not buffers or arguments"
            )


def _numbers(value: Any) -> int:
    """Numbers in constructor arguments; modules among them are counted as modules."""
    if isinstance(value, Mapping):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_numbers, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def _embedding_work(model: torch.nn.Module, shape: tuple[int, ...]) -> int:
    return multiply_adds(model, torch.zeros(1, *shape))[0]
