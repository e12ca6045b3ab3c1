"""An adapter's stages carried out again under other circumstances, to compare what they write."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmark.config.files import digest, file_digest
from benchmark.config.seeds import derive
from benchmark.data.base import Dataset, DatasetReader, Evaluation, read_options
from benchmark.data.serialization import read_dataset, write_dataset
from benchmark.harness.graph import Stage
from benchmark.harness.stages import Context, run_stage
from benchmark.harness.store import Store
from benchmark.training.device import Device

Output = dict[str, str]
"""Digest of each file that a stage writes, and of its facts."""
Change = Callable[[Dataset], Dataset]
_COLUMNS = ("labels", "camera", "media", "group", "template")


class _Killed(BaseException):
    """Ends a training after its first checkpoint, as a kill would."""


class Twin:
    """A copy of the stages that some others stand on; what runs there cannot change the store.

    Args:
        store: Where the stages are finished.
        stages: Those that will be carried out again.
        root: Folder of the copy.
        change: What is done to the dataset in it, and to every one that is loaded meanwhile.
    """

    def __init__(
        self, store: Store, stages: Sequence[Stage], root: Path, change: Change | None = None
    ) -> None:
        self.root, self.change = root, change
        self.numbers = count()
        inputs = {s.name: s for stage in stages for s in stage.inputs.values()}
        for name, stage in inputs.items():
            folder = root / "stages" / name
            shutil.copytree(store.path(name), folder)
            if change is not None and stage.kind == "data":
                write_dataset(change(_in_memory(read_dataset(store.path(name)))), folder)

    def output(self, stage: Stage) -> Output:
        """What a stage writes here."""
        folder = self._folder(stage)
        with _loading(stage, self.change):
            return replay(stage, self.root, folder)

    def resumed(self, stage: Stage) -> Output:
        """What it writes if it is killed after its first checkpoint and begun again."""
        folder = self._folder(stage)
        try:
            return replay(stage, self.root, folder, kill=True)
        except _Killed:
            return replay(stage, self.root, folder)

    def _folder(self, stage: Stage) -> Path:
        folder = self.root / "work" / f"{next(self.numbers)}-{stage.name}"
        folder.mkdir(parents=True)
        return folder


def replay(stage: Stage, root: Path, folder: Path, kill: bool = False) -> Output:
    """Carry a stage out on the CPU, on inputs below ``root``; ``kill`` ends it half-way."""

    def progress(_: float) -> None:
        if kill:
            raise _Killed

    folder.mkdir(parents=True, exist_ok=True)
    inputs = {role: root / "stages" / s.name for role, s in stage.inputs.items()}
    context = Context(folder, folder, Device("cpu"), stage.local, progress)
    facts = run_stage(stage.kind, stage.params, inputs, context)
    return output_of(folder, facts)


def output_of(folder: Path, facts: object) -> Output:
    """Digests of what a stage wrote into a folder, and of what it says."""
    files = {path.name: file_digest(path) for path in sorted(folder.glob("*.safetensors"))}
    return files | {"facts": digest(facts)}


def with_seed(stage: Stage, seed: int) -> Stage:
    """The stage under another seed."""
    return replace(stage, params={**stage.params, "seed": derive(seed, "check")})


class Elsewhere:
    """Replays in processes of their own, each in one that has done nothing before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.numbers = count()
        self.pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1)

    def outputs(self, *stages: Stage) -> "Future[list[Output]]":
        """What stages write one after the other in one process."""
        folder = self.root / "work" / f"elsewhere-{next(self.numbers)}"
        return self.pool.submit(_replays, list(stages), self.root, folder)

    def __enter__(self) -> "Elsewhere":
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(cancel_futures=True)


def _replays(stages: Sequence[Stage], root: Path, folder: Path) -> list[Output]:
    folders = (folder.with_name(f"{folder.name}-{i}") for i in range(len(stages)))
    return [replay(stage, root, work) for stage, work in zip(stages, folders, strict=True)]


def other_labels(dataset: Dataset) -> Dataset:
    """The dataset with evaluation items that have each other's labels; images stay."""

    def change(items: Evaluation) -> Evaluation:
        rows = np.random.default_rng(0).permutation(len(items))
        return replace(items, **{name: getattr(items, name)[rows] for name in _COLUMNS})

    return _changed(dataset, change)


def other_images(dataset: Dataset) -> Dataset:
    """The dataset with negatives as evaluation images; labels stay."""

    def change(items: Evaluation) -> Evaluation:
        return replace(items, images=255 - items.images[np.arange(len(items))])

    return _changed(dataset, change)


def _changed(dataset: Dataset, change: Callable[[Evaluation], Evaluation]) -> Dataset:
    evaluations = {name: change(items) for name, items in dataset.evaluations.items()}
    return replace(dataset, evaluations=evaluations)


def _in_memory(dataset: Dataset) -> Dataset:
    """The dataset without a hold on its files, which may then be written anew."""
    train = replace(dataset.train, images=np.array(dataset.train.images))
    images = {name: np.array(items.images) for name, items in dataset.evaluations.items()}
    evaluations = {
        name: replace(items, images=images[name]) for name, items in dataset.evaluations.items()
    }
    return replace(dataset, train=train, evaluations=evaluations)


@contextmanager
def _loading(stage: Stage, change: Change | None) -> Iterator[None]:
    """Change the stage's dataset wherever it is loaded meanwhile, past the stage's inputs too."""
    if change is None:
        yield
        return
    reader = type(read_options(stage.inputs["data"].params["dataset"]))
    load = reader.load

    def changed(self: DatasetReader, root: Path | None) -> Dataset:
        return change(load(self, root))

    try:
        reader.load = changed  # type: ignore[method-assign]
        yield
    finally:
        reader.load = load  # type: ignore[method-assign]
