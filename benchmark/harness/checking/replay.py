"""An adapter's stages carried out again under other circumstances, to compare what they write."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmark.config.files import digest, file_digest
from benchmark.config.places import real
from benchmark.config.seeds import derive
from benchmark.contract.arrays import apply
from benchmark.data.base import Dataset, DatasetReader, Evaluation, read_options
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.errors import BenchError, PassedOverWarning
from benchmark.harness.graph import Stage
from benchmark.harness.processes import Workers
from benchmark.harness.stages import Context, run_stage
from benchmark.harness.store import VECTORS, Store
from benchmark.harness.work import DataWork, EmbeddingWork
from benchmark.models.module import Portable, load_module
from benchmark.training.device import Device
from benchmark.training.loop import checkpoints_each_epoch

Output = dict[str, str]
"""Digest of each file that a stage writes, and of its facts; or its failure, in words."""
FAILURE = "failure"
_OTHER = "other-"  # before the name of a stage, for its folder with other embeddings
Change = Callable[[Evaluation], Evaluation]
Arrays = tuple[Any, ...]
Part = tuple[Path, Arrays]
"""File of a part of an update, and the arrays that it is tried on."""
_COLUMNS = ("labels", "camera", "media", "group", "template")


class _Killed(BaseException):
    """Ends a training after its first checkpoint, as a kill would."""


@dataclass(frozen=True)
class Poison:
    """Evaluation data exchanged for other data, which may change no update."""

    change: Change  # of evaluation items, wherever a dataset is read
    embeddings: bool  # whether stored embeddings of evaluation items are exchanged too


class Twin:
    """A copy of finished stages below ``root``; what runs there cannot change the store.

    A poison is given to the evaluation data in it, and to every dataset that is loaded meanwhile.
    Without one embeddings of training images have a second copy, their numbers in another order.
    """

    def __init__(
        self, store: Store, stages: Sequence[Stage], root: Path, poison: Poison | None = None
    ) -> None:
        self.root, self.poison = root, poison
        self.numbers = count()
        for stage in stages:
            folder = root / "stages" / stage.name
            shutil.copytree(store.path(stage.name), folder)
            if poison is not None:
                _exchange(stage, folder, poison)
            elif _is_fitted_to(stage):
                other = folder.with_name(_OTHER + stage.name)
                shutil.copytree(folder, other)
                np.save(other / VECTORS, np.load(folder / VECTORS)[..., ::-1])

    def output(self, stage: Stage) -> Output:
        """Files that a stage writes here."""
        return attempt(stage, self.root, self.folder(stage.name))

    def resumed(self, stage: Stage) -> Output:
        """Files that it writes if it is killed after its first checkpoint and begun again."""
        folder = self.folder(stage.name)
        try:
            return attempt(stage, self.root, folder, kill=True)
        except _Killed:
            return attempt(stage, self.root, folder)

    def folder(self, name: str) -> Path:
        """A new folder to work in."""
        folder = self.root / "work" / f"{next(self.numbers)}-{name}"
        folder.mkdir(parents=True)
        return folder


def _exchange(stage: Stage, folder: Path, poison: Poison) -> None:
    """Poison a copied stage: the dataset, or embeddings of evaluation items."""
    work = stage.work
    if isinstance(work, DataWork):
        # In memory: without a hold on the files that are written anew.
        dataset = _changed(read_dataset(folder), lambda e: replace(e, images=np.array(e.images)))
        train = replace(dataset.train, images=np.array(dataset.train.images))
        write_dataset(_changed(replace(dataset, train=train), poison.change), folder)
    elif poison.embeddings and isinstance(work, EmbeddingWork) and not _is_fitted_to(stage):
        vectors = np.load(folder / VECTORS)
        noise = np.random.default_rng(0).standard_normal(vectors.shape)
        np.save(folder / VECTORS, noise.astype(vectors.dtype))


def _is_fitted_to(stage: Stage) -> bool:
    """A part by name is an evaluation set, one by a split is of training images."""
    return isinstance(stage.work, EmbeddingWork) and not isinstance(stage.work.part, str)


def attempt(stage: Stage, root: Path, folder: Path, kill: bool = False) -> Output:
    """Carry a stage out on the CPU, on inputs below ``root``; ``kill`` ends it half-way."""

    def progress(_: float) -> None:
        if kill:
            raise _Killed

    try:
        folder.mkdir(parents=True, exist_ok=True)
        context = Context(folder, folder, Device("cpu"), progress)
        with checkpoints_each_epoch() if kill else nullcontext():
            facts = run_stage(stage.work.at(lambda of: root / "stages" / of.name), context)
        return output_of(folder, facts)
    except Exception as error:  # an adapter may raise anything
        return {FAILURE: " ".join(f"{type(error).__name__}: {error}".split())[:200]}


def output_of(folder: Path, facts: object) -> Output:
    """Digests of what a stage wrote into a folder, and of what it says."""
    files = {path.name: file_digest(path) for path in sorted(folder.glob("*.safetensors"))}
    return files | {"facts": digest(facts)}


@dataclass(frozen=True)
class _Input:
    """A finished stage, by the name of its folder."""

    name: str


def otherwise(stage: Stage) -> Stage:
    """The stage under another seed, and with other embeddings of the training images."""
    work = stage.work.at(lambda of: _Input(_OTHER * _is_fitted_to(of) + of.name))
    return replace(stage, work=replace(work, seed=derive(1, "check")))


class Done(NamedTuple):
    """Outcome of :func:`do`: outputs of each part, files of each stage."""

    parts: list[Arrays]
    stages: list[Output]


class Elsewhere(Workers):
    """Work in processes of their own, each in one that has done nothing before."""

    def __init__(self) -> None:
        super().__init__(1, tasks=1)

    def do(self, twin: Twin, stages: Sequence[Stage], parts: Sequence[Part] = ()) -> Future[Done]:
        """:func:`do` on the inputs of a twin, in an empty folder that is also the temporary one."""
        return self.submit(
            _do_alone, stages, parts, twin.root, twin.folder("elsewhere"), twin.poison
        )


def _do_alone(
    stages: Sequence[Stage], parts: Sequence[Part], root: Path, folder: Path, poison: Poison | None
) -> Done:
    """As :func:`do`, where what earlier updates left in files for themselves is not found."""
    warnings.simplefilter("ignore", PassedOverWarning)  # told where the check began
    root, folder = real(root), real(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    os.chdir(folder)
    return do(stages, parts, root, folder, poison)


def do(
    stages: Sequence[Stage], parts: Sequence[Part], root: Path, folder: Path, poison: Poison | None
) -> Done:
    """Apply parts of updates, then replay stages; with ``poison`` datasets are loaded changed."""
    with _loading(stages, poison):
        given = [applied(path, arrays) for path, arrays in parts]
        folders = (folder.with_name(f"{folder.name}-{i}") for i in range(len(stages)))
        return Done(given, [attempt(s, root, f) for s, f in zip(stages, folders, strict=True)])


def applied(path: Path, arrays: Arrays) -> Arrays:
    """Output of a stored part for arrays; a BenchError that names it if it has none."""
    try:
        found = outputs_of(load_module(path), *arrays)
    except BenchError as error:
        raise BenchError(f"{path.stem}: {error}") from error
    if not found:
        raise BenchError(f"{path.stem}: wrong output: None, expected a Tensor")
    return found


def outputs_of(part: Portable, *arrays: Any) -> Arrays:
    """Outputs of a part for arrays, those that there are."""
    out = apply(part, *arrays)
    return tuple(v for v in (out if isinstance(out, tuple) else (out,)) if v is not None)


def other_labels(items: Evaluation) -> Evaluation:
    """Items with labels drawn anew from some of the classes; images stay.

    Neither first nor last ones: least, most, number, mean and counts of the labels are others too.
    """
    low, high = np.quantile(items.labels, [0.1, 0.5])
    some = np.flatnonzero((items.labels > low) & (items.labels <= high))
    rows = np.random.default_rng(0).choice(some if len(some) else len(items), len(items))
    return replace(items, **{name: getattr(items, name)[rows] for name in _COLUMNS})


def other_images(items: Evaluation) -> Evaluation:
    """Items with noise as images; labels stay."""
    noise = np.random.default_rng(0).integers(256, size=items.images.shape, dtype=np.uint8)
    return replace(items, images=noise)


def other_images_and_labels(items: Evaluation) -> Evaluation:
    """Both."""
    return other_images(other_labels(items))


def _changed(dataset: Dataset, change: Change) -> Dataset:
    evaluations = {name: change(items) for name, items in dataset.evaluations.items()}
    return replace(dataset, evaluations=evaluations)


@contextmanager
def _loading(stages: Sequence[Stage], poison: Poison | None) -> Iterator[None]:
    """Change the stages' dataset wherever it is loaded meanwhile, past their inputs too."""
    if poison is None:
        yield
        return
    reader = type(read_options(stages[0].work.data.work.dataset))
    load, change = reader.load, poison.change

    def changed(self: DatasetReader, root: Path | None) -> Dataset:
        return _changed(load(self, root), change)

    try:
        reader.load = changed  # type: ignore[method-assign]
        yield
    finally:
        reader.load = load  # type: ignore[method-assign]
