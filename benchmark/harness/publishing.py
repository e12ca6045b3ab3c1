"""Publish what committed records of a board stand on, or pages show of them: models, pictures.

A model is known by the hash of its weights, which the record of ``independent`` names; the index
has the name that planning gives its stage today.
"""

import io
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import write_sealed
from benchmark.config.reading import build
from benchmark.data.base import DatasetReader, read_options
from benchmark.errors import BenchError
from benchmark.harness.core_board import CoreBoard, Unit, unit_request
from benchmark.harness.published_models import (
    FOLDER,
    INDEX,
    Index,
    PublishedFile,
    PublishedModel,
    TrainingFacts,
    path_of,
    read_published,
)
from benchmark.harness.store import Store
from benchmark.harness.work import ModelWork
from benchmark.records.details import Nearest
from benchmark.records.details_files import find_details
from benchmark.records.files import StoredRecord, read_record
from benchmark.records.pictures import SIDE, Pictures, look_at, pictures_name
from benchmark.records.record import StageRun, record_path

Say = Callable[[str], object]
Kept = dict[str, tuple[Store, dict[str, Any]]]
"""Hash of the weights -> the store that has them, and what the stage says of itself."""
_QUALITY = 60  # of WebP: a picture of 32 pixels takes some 300 bytes


@dataclass(frozen=True)
class Wanted:
    """A model that records of a board stand on."""

    unit: str  # in words, of the most important one
    title: str
    checkpoint: str
    run: StageRun  # of its training
    first: bool  # of the first generation, else an independent one


@dataclass(frozen=True)
class Publication:
    """Models that were written, and those still missing."""

    index: Index
    folder: Path
    n_bytes: int
    missing: tuple[Wanted, ...]  # no store has them
    beyond: tuple[Wanted, ...]  # too many bytes


def publish(
    board: CoreBoard, results: Path, stores: Iterable[Path], roots: Mapping[str, Path],
    most_bytes: int, address: str = "", say: Say = lambda line: None,
) -> Publication:  # fmt: skip
    """Write ``models`` below a folder of results: files by hash, and the index.

    The board's records of ``independent`` name the models. First generations are all written, then
    independent models, by the importance of their boards, while all files together have no more
    than ``most_bytes``. Files beyond that are put at the ``address``, for runs to fetch. What was
    published before and is still wanted stays. ``say`` is told why a store's model is left out.

    Raises:
        BenchError: If a record is missing, damaged or of other work than this code's.
    """
    wanted = _wanted(board, results, roots, say)
    folder = results / FOLDER
    kept = _kept(stores, {each.checkpoint for each in wanted.values()}, say)
    before = read_published(folder) if (folder / INDEX).is_file() else None
    models, total = dict[str, PublishedModel](), 0
    missing, beyond = list[Wanted](), list[Wanted]()
    counted = set[str]()
    for name, want in sorted(wanted.items(), key=lambda item: not item[1].first):
        model = _model(want, kept, before.index.models.get(name) if before else None)
        if model is None:
            missing.append(want)
            continue
        new = {f.sha256: f.bytes for f in model.files.values() if f.sha256 not in counted}
        if not want.first and total + sum(new.values()) > most_bytes:
            beyond.append(want)
            if not address:
                continue
        else:
            total, counted = total + sum(new.values()), counted | new.keys()
            _copy(model, kept.get(want.checkpoint), folder)
        models[name] = model
    plain = {name: model.model_dump(exclude_none=True) for name, model in models.items()}
    index = build(Index, {"address": address, "models": plain}, "models")
    write_sealed(folder / INDEX, index.model_dump(mode="json", exclude_none=True))
    for path in folder.glob("*.safetensors"):
        if path.stem not in counted:
            path.unlink()
    return Publication(index, folder, total, tuple(missing), tuple(beyond))


def _wanted(
    board: CoreBoard, results: Path, roots: Mapping[str, Path], say: Say
) -> dict[str, Wanted]:
    """By the name of the stage that trains it; of two of one name the more important one's."""
    found: dict[str, Wanted] = {}
    for unit in board.units:
        for name, want in _of_unit(unit, board, results, roots):
            other = found.setdefault(name, want)
            if other.checkpoint != want.checkpoint:
                say(f"left out '{want.title}' of {want.unit}: another than that of {other.unit}")
    return found


def _of_unit(
    unit: Unit, board: CoreBoard, results: Path, roots: Mapping[str, Path]
) -> Iterator[tuple[str, Wanted]]:
    request = unit_request(unit, roots, board.precision)
    if request.setup.track.needs_root and request.data_root is None:
        raise BenchError(f"models: track {unit.track}: needs --data-root {unit.track}=DIR")
    path = record_path(request.folder(results), unit.protocol, unit.track, "independent", unit.seed)
    record = read_record(path)
    (result,) = request.plan(["independent"]).results
    if result.key != record.key:
        raise BenchError(f"{path}: of other work than this code does; run it again first")
    first = result.bound.work.vectors[0].work.model.name
    words = f"{unit.title} on {unit.track}, seed {unit.seed}"
    for stage in result.stages:
        if isinstance(stage.work, ModelWork):
            title, alone = stage.title, {"published": None}
            run = record.run.stages.get(title, StageRun()).model_copy(update=alone)
            is_first, weights = stage.name == first, record.checkpoints[title]
            yield stage.name, Wanted(words, title, weights, run, is_first)


def _kept(stores: Iterable[Path], hashes: set[str], say: Say) -> Kept:
    """Finished trainings of stores with weights that are wanted, each looked at before."""
    kept: Kept = {}
    for store in map(Store, stores):
        for entry in store.entries():
            if not entry.finished or entry.kind != ModelWork.kind:
                continue
            where = f"{store.path(entry.name)}"
            damage = store.damage(entry.name)
            if damage is not None:
                say(f"left out {where}: {damage}")
                continue
            meta = store.meta(entry.name)
            if meta["facts"].get("checkpoint") in hashes:
                kept.setdefault(meta["facts"]["checkpoint"], (store, meta))
            else:
                say(f"left out {where}: '{meta['title']}': no record of the board stands on it")
    return kept


def _model(want: Wanted, kept: Kept, before: PublishedModel | None) -> PublishedModel | None:
    """Entry of a model; ``None`` if neither a store nor an earlier index has it."""
    if want.checkpoint not in kept:
        same = before is not None and before.facts.checkpoint == want.checkpoint
        return before if same else None
    meta = kept[want.checkpoint][1]
    files = {
        name: PublishedFile(sha256=about["digest"].removeprefix("sha256:"), bytes=about["bytes"])
        for name, about in meta["files"].items()
    }
    facts = build(TrainingFacts, meta["facts"], f"stage {meta['name']}: facts")
    return PublishedModel(title=want.title, files=files, facts=facts, run=want.run)


def _copy(model: PublishedModel, kept: tuple[Store, dict[str, Any]] | None, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in model.files.items():
        target = path_of(folder, file.sha256)
        if target.is_file() and target.stat().st_size == file.bytes:
            continue
        if kept is None:
            raise BenchError(f"{target}: missing, though it was published, and in no --store")
        part = target.with_suffix(".part")
        shutil.copyfile(kept[0].path(kept[1]["name"]) / name, part)
        part.replace(target)


def items_shown(stored: Sequence[StoredRecord]) -> dict[str, tuple[StoredRecord, set[int]]]:
    """Name of a file of pictures -> one of its records, and the rows that pages show, if any."""
    nearest = {id(each): found for each in stored if (found := _nearest(each)) is not None}
    bounds = {_board(s): nearest[id(s)] for s in stored if s.record.method == "independent"
              and id(s) in nearest}  # fmt: skip
    shown: dict[str, tuple[StoredRecord, set[int]]] = {}
    for each in stored:
        name, bound = pictures_name(each.record), bounds.get(_board(each))
        if name is None or bound is None or id(each) not in nearest:
            continue
        rows = shown.setdefault(name, (each, set()))[1]
        for looked in look_at(nearest[id(each)], bound):
            rows |= {looked.query, *(item for item, _ in (*looked.before, *looked.after))}
    return shown


def may_be_passed_on(record: StoredRecord) -> bool:
    """Tell a dataset whose licence lets its pictures be committed."""
    return _reader(record).pictures


def draw_pictures(stored: StoredRecord, rows: Iterable[int], root: Path | None) -> Pictures:
    """Pictures of items of a record's evaluation set; BenchError if its data are not there."""
    record, reader = stored.record, _reader(stored)
    dataset = reader.load(root)
    wanted = record.dataset.fingerprint if record.dataset else ""
    if dataset.fingerprint() != wanted:
        raise BenchError(
            f"{stored.path}: of other data of {dataset.name} than {root or 'those drawn here'}"
        )
    part = (pictures_name(record) or "").rpartition("-")[2]
    items = reader.evaluation(dataset, part)
    order = sorted(rows)
    return {row: _webp(items.images[np.array([row])][0]) for row in order}


def _reader(stored: StoredRecord) -> DatasetReader:
    rules = stored.record.parameters
    if rules is None:
        raise BenchError(f"{stored.path}: does not say which options its dataset has")
    return read_options(rules.track.dataset, rules.track.data)


def _board(stored: StoredRecord) -> tuple[object, ...]:
    r = stored.record
    changed = repr(sorted(r.changed.items()))
    return r.protocol, r.protocol_version, r.track, r.track_version, r.seed, changed


def _nearest(stored: StoredRecord) -> Nearest | None:
    try:
        details = find_details(stored.record, stored.path, with_results=False)
    except BenchError:
        return None
    return None if details is None else details.nearest


def _webp(pixels: NDArray[np.uint8]) -> bytes:
    """An image ``[c, h, w]`` uint8 as WebP."""
    from PIL import Image

    channels = pixels.transpose(1, 2, 0)
    image = Image.fromarray(channels[..., 0] if channels.shape[2] == 1 else channels)
    image.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    image.convert("RGB").save(content, "WEBP", quality=_QUALITY, method=4)
    return content.getvalue()
