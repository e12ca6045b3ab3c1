"""Checks of an update against its adapter's declarations: sizes, parts, result lists, cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.config.declarations import MethodDeclaration
from benchmark.config.recipes import ModelSpec
from benchmark.contract import RescoredList, TwoLists
from benchmark.contract.conversion import PARTS
from benchmark.contract.lists import ranks
from benchmark.data.base import Images
from benchmark.errors import BenchError
from benchmark.harness.checking.replay import applied, outputs_of
from benchmark.harness.cost import multiply_adds
from benchmark.harness.evaluation.cases import load_merge
from benchmark.harness.store import HEAD, Stored
from benchmark.models.backbones import Encoder
from benchmark.models.module import Portable, load_module
from benchmark.training.embedding import embed

Vectors = NDArray[np.float32]
_SOME = 48
"""Images that the new model is tried on in groups."""
_NAMES = {"convert": "conversion", "query_view": "query view"}
_TOLERANCE = 1e-4
"""Of the largest number: sums of float32 in another order differ by less."""
_FEW = 64
"""Numbers beside its parameters that any part may hold."""
_NEARLY = 0.05
"""Share of its length by which a tensor may be off and still be the old model's."""
_ELEMENTWISE = 8
"""Parameters a dimension that a part without a matrix product may have."""
_QUERIES, _ITEMS = 5, 40
Scores = NDArray[np.floating]


@dataclass(frozen=True)
class Given:
    """Output of an update, and the embeddings that it is tried on."""

    method: MethodDeclaration
    spec: ModelSpec  # the new model as the track has it
    folder: Path  # output of the update's stage
    model: Path  # file of the new model
    old_model: Path
    stored: Stored  # what the gallery keeps by the old model, before the update
    new: Vectors  # embeddings of the same items by the new model, ``[n, d]``
    images: Images  # the items

    def parts(self) -> dict[str, Portable]:
        """Its conversion, query view and priority, as far as it has them."""
        return {path.stem: load_module(path) for path, _ in self.files()}

    def files(self) -> list[tuple[Path, tuple[Any, ...]]]:
        """Their files, each with the arrays that it is applied to."""
        paths = {name: self.folder / f"{name}.safetensors" for name in PARTS if name != "merge"}
        return [(path, self.inputs(name)) for name, path in paths.items() if path.exists()]

    def inputs(self, part: str) -> tuple[Any, ...]:
        """Arrays that a part is applied to."""
        if part == "joint_view":
            return self.new, self.stored[0]
        return (self.new,) if part == "query_view" else self.stored

    def outputs(self) -> dict[str, tuple[Vectors, ...]]:
        """Output of each part; the new embeddings too."""
        parts = {path.stem: applied(path, arrays) for path, arrays in self.files()}
        return {"new model": (self.new,), **parts}


def check_parts(given: Given) -> None:
    """Carry out every check of this module; a BenchError names the first fault."""
    outputs = given.outputs()
    check_finite(outputs)
    check_apart(outputs)
    check_sizes(given, outputs)
    check_changes(given, outputs)
    check_lists(given.method, "joint_view" in outputs, load_merge(given.folder))
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


def check_apart(outputs: Mapping[str, Sequence[Vectors]]) -> None:
    """Refuse embeddings that are the same for every item, as of a map to zeros."""
    for name, (vectors, *_) in outputs.items():
        if vectors.ndim == 2 and len(vectors) > 1 and (vectors == vectors[0]).all():
            raise BenchError(
                f"nothing to tell items by: {name} gives the same vector for all {len(vectors)}"
            )


def check_sizes(given: Given, outputs: Mapping[str, Sequence[Vectors]]) -> None:
    """Refuse embeddings of another size than declared, and those that cannot be compared."""
    n, changes = len(given.new), given.method.changes
    dim = given.new.shape[1]
    if dim != given.spec.dim and "dimension" not in changes:
        raise BenchError(
            f"wrong size: the new model gives {dim} dimensions, the track asks for "
            f"{given.spec.dim}, and 'dimension' is not among changes"
        )
    gallery = outputs.get("convert", (given.stored[0],))[0]
    queries = outputs.get("joint_view", outputs.get("query_view", (given.new,)))[0]
    if changes and queries.shape[1:] != gallery.shape[1:]:
        raise BenchError(
            f"wrong size: new queries have {list(queries.shape[1:])}, items of the gallery after "
            f"the update {list(gallery.shape[1:])}: they cannot be compared"
        )
    if "priority" in outputs and outputs["priority"][0].shape != (n,):
        shape = list(outputs["priority"][0].shape)
        raise BenchError(f"wrong size: priority: expected a number an item, [{n}], got {shape}")
    _check_head(given, dim)


def _check_head(given: Given, dim: int) -> None:
    """Refuse a classifier that a later update could not take as the old one."""
    path = given.model.with_name(HEAD)
    if not path.exists() or "dimension" in given.method.changes:
        return
    classes, columns = load_module(path).state_dict()["weight"].shape
    if columns != dim:
        raise BenchError(
            f"wrong size: the new classifier has {classes} classes of {columns} dimensions, the "
            f"new model gives {dim}"
        )


def check_changes(given: Given, outputs: Mapping[str, Sequence[Vectors]]) -> None:
    """Refuse a gallery or queries that change, or do not, against what the adapter declares."""
    parts, changes = given.parts(), given.method.changes
    # What only cuts a longer embedding is a part of that.
    queries = "joint_view" if "joint_view" in parts else "query_view"
    declared = {"convert": ("gallery", {"gallery"}), queries: ("queries", {"queries", "dimension"})}
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
    if "query_view" in parts and "queries" not in changes:
        (viewed,) = outputs["query_view"]
        if not np.array_equal(viewed, given.new[:, : viewed.shape[1]]):
            raise BenchError(
                "undeclared change of the queries: the query view does more than cut the new "
                "embedding, and 'queries' is not among changes"
            )


def check_each_alone(given: Given) -> None:
    """Refuse a part, or a model, whose output for an item depends on the items beside it."""
    for name, part in given.parts().items():
        arrays = given.inputs(name)

        def output(rows: Any, part: Portable = part, arrays: Any = arrays) -> tuple[Vectors, ...]:
            return outputs_of(part, *(None if a is None else a[rows] for a in arrays))

        _compare(_NAMES.get(name, name), output, len(given.new))
    model, images = load_module(given.model), given.images[np.arange(min(_SOME, len(given.new)))]
    device = torch.device("cpu")
    _compare("new model", lambda rows: (embed(model, images[rows], device),), len(images))


def _compare(name: str, output: Callable[[Any], tuple[Vectors, ...]], n: int) -> None:
    """Compare what items get together with what they get again, in another order, in groups."""
    together = output(np.arange(n))
    if not all(map(np.array_equal, together, output(np.arange(n)))):
        raise BenchError(
            f"non-deterministic: the {name} gives the same items other numbers the second time"
        )
    scales = [_TOLERANCE * float(np.abs(whole).max(initial=1e-12)) for whole in together]
    for words, groups in _groupings(n):
        for rows in groups:
            for whole, part, scale in zip(together, output(rows), scales, strict=True):
                apart = float(np.abs(part - whole[rows]).max())
                if not apart <= scale:  # NaN neither
                    raise BenchError(
                        f"{name} depends on the {words}: an item gets numbers {apart:.2g} apart"
                    )


def _groupings(n: int) -> Iterator[tuple[str, list[NDArray[np.int64]]]]:
    order = np.random.default_rng(0).permutation(n)
    yield "order of the items", [order]
    yield "batch", np.array_split(np.arange(n), 2)
    yield "batch", [np.array([row]) for row in order[:8]]


def check_cost(given: Given) -> None:
    """Refuse work that the record would not count, or that the adapter declares otherwise."""
    _check_hidden_numbers(given)
    _check_uncounted_products(given)
    old, new, shape = load_module(given.old_model), load_module(given.model), given.images.shape[1:]
    alone = Encoder(given.spec.backbone, given.spec.dim, shape[0], shape[1])
    before, made, planned = (
        multiply_adds(model, torch.zeros(1, *shape))[0] for model in (old, new, alone)
    )
    within = _share_within(old, new) > 0.5
    # Beside the independent model the old one may run for a joint view of queries.
    if given.method.runs_old_model and given.method.own_model and not within:
        raise untrue("runs_old_model, and the old model is no part of the new one")
    if within and not given.method.runs_old_model and made >= planned + before / 2:
        raise untrue(
            f"the new model takes {made:,} multiply-adds an image, "
            f"the track's own {planned:,}, as the old model runs inside: declare runs_old_model"
        )


def _share_within(old: Portable, new: Portable) -> float:
    """Share of a model's numbers that another holds too, tensor by tensor, or nearly."""
    tensors = [tensor.float() for tensor in old.state_dict().values()]
    held = [tensor.float() for tensor in new.state_dict().values()]

    def within(one: torch.Tensor) -> bool:
        others = (other for other in held if other.shape == one.shape)
        return any((one - other).norm() <= _NEARLY * one.norm() for other in others)

    return sum(t.numel() for t in tensors if within(t)) / sum(t.numel() for t in tensors)


def _check_hidden_numbers(given: Given) -> None:
    files = {"new model": load_module(given.model), **given.parts()}
    for name, part in files.items():
        counted = sum(p.numel() for p in part.parameters())
        held = sum(t.numel() for t in part.state_dict().values()) + _numbers(part.arguments)
        if held > 2 * counted + _FEW:
            raise untrue(
                f"{name} has {counted:,} parameters and holds "
                f"{held:,} numbers; what is learned must be parameters, not buffers or arguments"
            )


def _check_uncounted_products(given: Given) -> None:
    """Refuse weights whose products are sums element by element, which nobody counts."""
    for name, part in given.parts().items():
        inputs = [None if a is None else torch.from_numpy(a[:1]) for a in given.inputs(name)]
        counted, n = multiply_adds(part, *inputs)[0], sum(p.numel() for p in part.parameters())
        if counted == 0 and n > _ELEMENTWISE * given.new.shape[1]:
            raise untrue(
                f"{name} has {n:,} parameters and no product of "
                "them is counted: multiply by torch.nn.functional.linear or @"
            )


def _numbers(value: Any) -> int:
    """Numbers in constructor arguments, four letters of a text as one; modules count themselves."""
    if isinstance(value, str):
        return len(value) // 4
    if isinstance(value, Mapping):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_numbers, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def check_lists(method: MethodDeclaration, has_joint_view: bool, merge: TwoLists | None) -> None:
    """Check declarations of result lists on made-up scores; a BenchError names the first fault."""
    _check_declared(method, has_joint_view, merge)
    if merge is None:
        return
    rng = np.random.default_rng(0)
    both = rng.uniform(-1, 1, (2, _QUERIES, _ITEMS)).astype(np.float32)
    filled = rng.random(_ITEMS) < 0.5
    first, second = both.copy()
    first[:, filled], second[:, ~filled] = np.nan, np.nan
    for one, two in (both, (first, second if merge.searches else both[1])):
        _check_block(merge, one, two)
    if merge.searches and merge.places_by != "merge":
        _check_places(merge, first, second)
    if merge.fused_by != "merge":
        _check_fused(merge, *both)


def untrue(words: str) -> BenchError:
    """The error for a declared cost that is another."""
    return BenchError(f"declared cost that is not true: {words}")


def _check_declared(
    method: MethodDeclaration, has_joint_view: bool, merge: TwoLists | None
) -> None:
    if has_joint_view and not (method.runs_old_model and method.model_runs > 1):
        raise untrue(
            "a joint view needs queries by both models: declare runs_old_model and two model_runs"
        )
    if method.runs_old_model and not method.own_model and not has_joint_view:
        raise untrue("runs_old_model, and no joint view takes its queries")
    kept = 2 if merge is not None and merge.searches else 1
    if method.indexes != kept:
        raise untrue(f"{kept} of indexes kept, declared are {method.indexes}")
    embedded = 0 if merge is None else merge.new_embeddings
    if method.new_embeddings != embedded:
        raise untrue(f"{embedded} new embeddings a query, declared are {method.new_embeddings}")


def _check_block(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse a merge that gives no number, or one that depends on what stands beside it."""
    merged = merge.merge(first, second)
    if not isinstance(merged, np.ndarray):
        raise BenchError(f"merge: expected an array of numpy, got {type(merged).__name__}")
    if merged.shape != first.shape or not np.isfinite(merged).all():
        raise BenchError("merge: expected a finite number for each item in either list")
    order = np.random.default_rng(1).permutation(_ITEMS)
    if not np.array_equal(merge.merge(first[:, order], second[:, order]), merged[:, order]):
        raise BenchError("merge depends on the order of the items")
    for i in range(_QUERIES):
        if not np.array_equal(merge.merge(first[i : i + 1], second[i : i + 1])[0], merged[i]):
            raise BenchError("merge depends on the queries beside one")


def _check_places(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse items of one list alone that stand elsewhere than ``places_by`` says."""
    if merge.places_by == "score":
        left = first if merge.scale is None else merge.scale(first)
        expected = np.where(np.isnan(second), left, second)
    else:
        expected = -np.where(np.isnan(second), ranks(first), ranks(second))
    if not np.array_equal(ranks(merge.merge(first, second)), ranks(expected)):
        raise BenchError(
            f"merge does not place items by their {merge.places_by}, as places_by says: declare "
            "'merge'"
        )


def _check_fused(merge: TwoLists, first: Scores, second: Scores) -> None:
    """Refuse items of both lists that stand elsewhere than ``fused_by`` says."""
    expected = second
    if merge.fused_by == "mean":
        expected = second + (first if merge.scale is None else merge.scale(first))
    elif merge.fused_by == "ranks":
        expected = 1.0 / (merge.k + ranks(first)) + 1.0 / (merge.k + ranks(second))
    elif merge.fused_by == "window":
        expected = RescoredList(merge.window).merge(first, second)
    if not np.array_equal(ranks(merge.merge(first, second)), ranks(expected)):
        raise BenchError(
            f"merge does not place items of both lists by their {merge.fused_by}, as fused_by "
            "says: declare 'merge'"
        )
