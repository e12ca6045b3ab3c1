"""Inputs of a user: no file is written over, no id passed over, no broken package in the way."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from support.detectors import Finding, findings, process
from support.hostile.ids import FILES
from support.isolated import Case, Forks, Outcome, Scratch
from support.packages import write_package
from support.upgrades import planted
from support.vector_files import write

from benchmark.config.entry_points import DATASETS, METHODS, TRACKS
from benchmark.contract.conversion import Conversion, Dims
from benchmark.models.parts import Affine, KeepSide

pytestmark = pytest.mark.slow

N, Q, DIM = 300, 40, 8
LIMIT = 60.0
"""Seconds of a report."""
NAMES = np.array([f"item-{k:03}" for k in range(N)])
OPTIONS = {"old.npy": "--old-gallery", "new.npy": "--new-gallery", "qn.npy": "--queries",
           "qo.npy": "--old-queries", "q.qrels": "--qrels"}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    return planted(n=N, q=Q, dim=DIM)


@pytest.fixture
def inputs(made, tmp_path):
    """Files of a report, a conversion and a folder of parquet files."""
    root = tmp_path / "inputs"
    (root / "parts").mkdir(parents=True)
    write(root / "old.npy", made.old, NAMES)
    write(root / "new.npy", made.new, NAMES)
    write(root / "qn.npy", made.queries)
    write(root / "qo.npy", made.old_queries)
    lines = [f"{q} 0 {NAMES[row]} 1\n" for q, row in enumerate(made.relevant)]
    (root / "q.qrels").write_text("".join(lines))
    write(root / "parts" / "a.parquet", made.old, NAMES)
    eye = np.eye(DIM, dtype=np.float32)
    _conversion(eye).save(root / "conversion")
    return root


def _conversion(weights: np.ndarray) -> Conversion:
    import torch

    parts = {"convert": KeepSide(Affine.of(torch.from_numpy(weights)))}
    dims = Dims(old=weights.shape[1], new=weights.shape[0])
    return Conversion("made-up", {}, "l2", dims, False, parts)


def report(inputs: Path, *more: object) -> Case:
    words = [str(w) for name, option in OPTIONS.items() for w in (option, inputs / name)]
    return Case(("upgrade", *words, "--maps", "procrustes", *map(str, more)))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*"))
            if p.is_file()}  # fmt: skip


def lost(before: dict[str, bytes], folder: Path) -> list[Finding]:
    """Files that were there and are not, or are others."""
    after = contents(folder)
    return [
        Finding("wrong", f"{name} is lost") for name in before if before[name] != after.get(name)
    ]


def writers(inputs: Path, name: str, place: Path) -> Iterator[Case]:
    """Every way to write to a place what is made of inputs, a file of that name among them."""
    conversion = str(inputs / "conversion")
    top = name.partition("/")[0]
    if top.removesuffix(".ids.npy") in OPTIONS:
        for option in ("--json", "--report", "--save-map"):
            yield report(inputs, option, place)
    for source in ("old.npy", "parts"):
        if top in (source, f"{source}.ids.npy", "conversion"):
            yield Case(("convert", conversion, str(inputs / source), str(place), "--force"))


def test_writers_over_inputs(inputs, forks: Forks, scratch: Scratch, campaign):
    one = campaign("writers-over-inputs", "files that are read, named as what is to be written")
    before = contents(inputs)
    for number, name in enumerate(before):
        for how in ("itself", "symbolic link", "hard link"):
            place = inputs / name
            if how != "itself":
                place = scratch.out / f"{number}{Path(name).suffix}"
                (place.symlink_to if how == "symbolic link" else place.hardlink_to)(inputs / name)
            for case in writers(inputs, name, place):
                outcome = forks.run(case, scratch, LIMIT)
                found = [*process(outcome, (2,), LIMIT), *lost(before, inputs)]
                one.add(f"{case.args[0]} over {name} by {how}", found, told=int(outcome.code == 2))
                if lost(before, inputs):
                    (inputs / name).write_bytes(before[name])
            if how != "itself":
                place.unlink(missing_ok=True)
    assert one.counts["tried"] > 60


def test_the_loss_of_an_input_is_seen(inputs, forks: Forks, scratch: Scratch):
    before = contents(inputs)
    assert not lost(before, inputs)
    allowed = (inputs,)
    case = Case(("write", str(inputs / "old.npy"), "x"), "support.jobs:control", allowed=allowed)
    assert forks.run(case, scratch).code == 0
    assert [str(each) for each in lost(before, inputs)] == ["wrong: old.npy is lost"]


COLUMNS = ("_id", "__index_level_0__", "docid", "filenames", "key", "page")
KINDS = {
    "text": lambda keys: keys,
    "bytes": lambda keys: [key.encode() for key in keys],
    "numbers": lambda keys: [int(key[-3:]) for key in keys],
    "floats": lambda keys: [float(key[-3:]) for key in keys],
    "uuid": lambda keys: [uuid.UUID(int=int(key[-3:])).bytes for key in keys],
}  # fmt: skip


def as_text(kind: str, key: str) -> str:
    """An id as judgements write it."""
    if kind in ("numbers", "floats"):
        return str(int(key[-3:]))
    return str(uuid.UUID(int=int(key[-3:]))) if kind == "uuid" else key


def elsewhere(path: Path, vectors: np.ndarray, keys: list[str], column: str, kind: str) -> bool:
    """Write ids of a kind under a name; whether the format can hold them."""
    ids = KINDS[kind](list(keys))
    if path.suffix in (".parquet", ".arrow"):
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
        column_of = pa.array(ids, pa.binary(16)) if kind == "uuid" else pa.array(ids)
        if kind == "uuid":
            column_of = pa.ExtensionArray.from_storage(pa.uuid(), column_of)
        table = pa.table({column: column_of, "emb": flat})
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    elif kind == "uuid" or (path.suffix == ".safetensors" and kind in ("text", "bytes")):
        return False
    elif path.suffix == ".npz":
        np.savez(path, features=vectors, **{column: np.array(ids)})
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file["features"], file[column] = vectors, ids
    else:
        save_file({"features": vectors, column: np.array(ids)}, path)
    return True


def scores(page: Path) -> dict[str, float]:
    found = json.loads(page.read_text())["strategies"]
    return {each["name"]: round(each["score"]["value"], 9) for each in found}


def joined(inputs: Path, made, order: np.ndarray, ending: str, column: str, kind: str) -> bool:
    """An upgrade whose galleries are in another order and say so under other names."""
    keys = NAMES.tolist()
    shuffled = [keys[i] for i in order]
    if not elsewhere(inputs / f"old{ending}", made.old, keys, column, kind):
        return False
    elsewhere(inputs / f"new{ending}", made.new[order], shuffled, column, kind)
    lines = [f"{q} 0 {as_text(kind, keys[row])} 1\n" for q, row in enumerate(made.relevant)]
    (inputs / "k.qrels").write_text("".join(lines))
    return True


def outcome_of(inputs: Path, ending: str, forks: Forks, scratch: Scratch, *more: str) -> Outcome:
    page = scratch.out / "report.json"
    page.unlink(missing_ok=True)
    files = {"old-gallery": f"old{ending}", "new-gallery": f"new{ending}", "queries": "qn.npy",
             "old-queries": "qo.npy", "qrels": "k.qrels"}  # fmt: skip
    words = [str(w) for option, name in files.items() for w in (f"--{option}", inputs / name)]
    return forks.run(Case(("upgrade", *words, "--maps", "procrustes", "--json", str(page), *more)),
                     scratch, LIMIT)  # fmt: skip


def passed_over(outcome: Outcome, page: Path, right: dict[str, float]) -> list[Finding]:
    """Faults of a report: other scores than with ids where they should be."""
    found = [*process(outcome, (0, 2), LIMIT)]
    if outcome.code == 0 and scores(page) != right:
        found.append(Finding("wrong", "ids were passed over: other scores"))
    return found


def test_ids_under_other_names(made, inputs, forks: Forks, scratch: Scratch, campaign):
    one = campaign("ids-elsewhere", "ids under other names and of other types, in another order")
    order = np.random.default_rng(1).permutation(N)
    page = scratch.out / "report.json"
    outcome = forks.run(report(inputs, "--json", page), scratch, LIMIT)
    assert outcome.code == 0, (outcome.signal, outcome.errors)
    right = scores(page)
    for ending in (".parquet", ".arrow", ".npz", ".h5", ".safetensors"):
        for column in COLUMNS:
            for kind in KINDS:
                if (column != "docid" and kind not in ("text", "numbers")) or not joined(
                    inputs, made, order, ending, column, kind
                ):
                    continue
                outcome = outcome_of(inputs, ending, forks, scratch)
                found = passed_over(outcome, page, right)
                told = f"ids are those of '{column}'" in " ".join(outcome.out.decode().split())
                if outcome.code == 0 and not told:
                    found.append(Finding("silent", "the column is not told"))
                if outcome.code == 2:
                    found.append(Finding("wrong", f"refused: {outcome.errors.strip()[-200:]}"))
                one.add(f"{column} of {kind} in {ending}", found, told=int(told))
    # The control: row numbers in the place of ids give other scores, or are refused.
    joined(inputs, made, order, ".parquet", "_id", "numbers")
    outcome = outcome_of(inputs, ".parquet", forks, scratch, "--id-column", "-")
    assert outcome.code == 2 or passed_over(outcome, page, right)


BROKEN = {
    "missing": (METHODS, {"lost": "nosuchmodule"}), "taken": (METHODS, {"bct": "others.fine"}),
    "track-missing": (TRACKS, {"lost": "nosuchmodule"}),
    "dataset-missing": (DATASETS, {"lost": "others.nothing"}),
    "exits": (METHODS, {"lost": "exiting.part"}), "raises": (DATASETS, {"lost": "raising.part"}),
    "no-python": (METHODS, {"lost": "others.half"}), "at-import": (METHODS, {"lost": "others.bad"}),
    "no-words": (METHODS, {"lost": "a b c"}), "no-track": (TRACKS, {"lost": "others"}),
    "exits-at-import": (METHODS, {"lost": "others.leaves"}),
}  # fmt: skip
OTHERS = {
    "others/__init__.py": "", "others/fine.py": "", "others/half.py": "def (\n",
    "others/bad.py": "import nosuchmodule\n", "others/leaves.py": "raise SystemExit(7)\n",
    "exiting/__init__.py": "raise SystemExit(7)\n", "exiting/part.py": "",
    "raising/__init__.py": "1 / 0\n", "raising/part.py": "",
}  # fmt: skip
UNRELATED = (
    ("list", "methods"), ("list", "tracks"), ("list", "protocols"), ("info", "bct"),
    ("info", "glyphs"), ("data", "list"),
    ("run", "-m", "bct", "-p", "open-class", "-t", "toy", "--dry-run", "--device", "cpu"),
)  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_entry_points(kind, forks: Forks, scratch: Scratch, tmp_path, campaign):
    one = campaign("entry-points", "packages whose entry points are broken, and all verbs")
    group, names = BROKEN[kind]
    folder = tmp_path / "site"
    folder.mkdir()
    write_package(folder, OTHERS, {group: names})
    before = scratch.state()
    told = 0
    for words in UNRELATED:
        case = Case((str(folder), *words), "support.jobs:with_packages")
        outcome = forks.run(case, scratch)
        found = findings(outcome, scratch, before, codes=(0,))
        told += "others-package 1.0" in outcome.errors or "others/half.py" in outcome.errors
        one.add(f"{kind}: {' '.join(words)}", found, told=int("passed over" in outcome.errors))
    asked = {
        METHODS: ("info", "lost"),
        TRACKS: ("info", "lost"),
        DATASETS: ("data", "check", "lost"),
    }
    if "lost" in names:
        case = Case((str(folder), *asked[group]), "support.jobs:with_packages")
        outcome = forks.run(case, scratch)
        found = findings(outcome, scratch, before, codes=(2,))
        one.add(f"{kind}: asked for", found, told=int(outcome.code == 2))
    assert told or kind in ("at-import", "exits-at-import", "no-track"), "the package is not named"


@pytest.mark.parametrize("name", FILES)
def test_hostile_ids(name, forks: Forks, scratch: Scratch, tmp_path, campaign):
    """In a process of its own, with everything that was imported before."""
    one = campaign("hostile-ids", "small files whose ids unpack to gigabytes")
    file, make = FILES[name]
    path = tmp_path / file
    make(path)
    _conversion(np.eye(4, dtype=np.float32)).save(tmp_path / "conversion")
    before = scratch.state()
    words = ("convert", str(tmp_path / "conversion"), str(path), str(scratch.out / "new.npz"))
    outcome = forks.run(Case(words), scratch)
    one.add(name, findings(outcome, scratch, before, codes=(2,)), told=int(outcome.code == 2))
