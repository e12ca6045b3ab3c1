"""Every file of every stage, and of the records, harmed in seven ways: no score may differ.

Every file of every stage is harmed in every way; a run that goes on must tell it, and write the
same bytes again. For one stage of each kind and each of its files, everything that was computed
from it is taken away before, so that it is used again: what is not looked at then gives another
result.
"""

from __future__ import annotations

import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.damages import DAMAGES, put
from support.detectors import Finding, process
from support.isolated import Case, Scratch
from support.runs import BACKFILL, QUICK, Run, dependants, differences, linked_copy, results

from benchmark.harness.graph import Plan, Stage
from benchmark.harness.store import META, Store

pytestmark = pytest.mark.slow

METHODS = ("procrustes", "bct", "fastfill", "fct:simclr", "d-simplex")
LIMIT = 120.0  # seconds


@pytest.fixture(scope="module")
def undisturbed(forks, tmp_path_factory):
    """Runs with stages of every kind, their store, and the results that are right."""
    root = tmp_path_factory.mktemp("undisturbed")
    scratch = Scratch(root / "scratch")
    protocol = root / "campaign.yaml"
    protocol.write_text(BACKFILL)
    runs = [
        Run(METHODS, str(protocol), QUICK, root / "store"),
        Run(("procrustes",), "modality", QUICK, root / "store"),
    ]
    whole = []
    for run in runs:
        out = root / f"out-{Path(run.protocol).stem}"
        run.carry_out(forks, scratch, out)
        whole.append((results(out), run))
    return root, whole


def alone(run: Run) -> list[Run]:
    """A run for each of its methods, the shortest first."""
    runs = [replace(run, methods=(name,)) for name in ("independent", *run.methods)]
    return sorted(runs, key=lambda each: len(each.plan().stages))


def shortest(stage: Stage, plans: list[tuple[Run, Plan]]) -> tuple[Run, Plan]:
    """The run that has the least to compute again when a stage is lost."""
    using = [each for each in plans if stage.name in {s.name for s in each[1].stages}]
    return min(using, key=lambda each: len(dependants(stage, each[1])))


def another(path: Path, store: Path) -> Path:
    """A file of the same name in another stage, or else another file of the same stage."""
    same = [p for p in sorted((store / "stages").glob(f"*/{path.name}")) if p != path]
    content = path.read_bytes()
    for other in (*same, *sorted(path.parent.iterdir())):
        if other != path and other.read_bytes() != content:
            return other
    raise AssertionError(f"{path}: nothing to swap with")


def test_every_file_of_every_stage(undisturbed, forks, tmp_path, campaign):
    root, whole = undisturbed
    one = campaign("damage-stages", "files of finished stages, harmed, then used again")
    scratch = Scratch(tmp_path / "scratch")
    numbers, used, seen = itertools.count(), set(), set()
    for right, run in whole:
        plans = [(each, each.plan()) for each in alone(run)]
        for stage in run.plan().stages:
            if stage.name in seen:
                continue
            seen.add(stage.name)
            single, plan = shortest(stage, plans)
            for file in sorted(p.name for p in (root / "store" / "stages" / stage.name).iterdir()):
                again = [] if (stage.kind, file) in used else dependants(stage, plan)
                used.add((stage.kind, file))
                for damage in DAMAGES:
                    moved = replace(single, store=tmp_path / str(next(numbers)) / "store")
                    found = harmed(stage, file, damage, moved, again, root, right, forks, scratch)
                    one.add(f"{stage.title}: {file} {damage}", found, told=int(not found))
                    shutil.rmtree(moved.store.parent)
    kinds = {stage.kind for _, run in whole for stage in run.plan().stages}
    assert {"data", "train", "side", "embed", "update", "first", "evaluate"} <= kinds
    assert one.counts["tried"] >= 7 * 60


def harmed(
    stage: Stage, file: str, damage: str, run: Run, again: list[Stage], root: Path, right, forks,
    scratch,
) -> list[Finding]:  # fmt: skip
    """Faults of a run after one file came to harm and some stages are gone."""
    whole = root / "store" / "stages"
    for each in run.plan().stages:
        if each not in again:
            linked_copy(whole / each.name, run.store / "stages" / each.name)
    folder = run.store / "stages" / stage.name
    other = another(folder / file, run.store) if damage == "swapped" else folder
    DAMAGES[damage](folder / file, other)
    out = run.store.parent / "out"
    outcome = forks.run(run.case(out), scratch, LIMIT)
    found = list(process(outcome, (0,), LIMIT))
    if outcome.code == 0:
        found += differences(out, right, every=False)
        # Without its stage.json a stage is not there at all, as if it had never been computed.
        if f"[{stage.name}]" not in outcome.errors and (file, damage) != (META, "deleted"):
            found.append(Finding("silent", "the damage is not told"))
        harm = Store(run.store).damage(stage.name)
        if harm is not None:
            found.append(Finding("kept", f"the stage is still damaged: {harm}"))
        found += [
            Finding("wrong", f"{path.name} has other bytes than before")
            for path in sorted(folder.iterdir())
            if path.name != META
            and path.read_bytes() != (whole / stage.name / path.name).read_bytes()
        ]
    return found


def _edited(text: str, pattern: str, new: str) -> str:
    made, n = re.subn(pattern, new, text, count=1, flags=re.S)
    assert n == 1, pattern
    return made


KEPT = ("seed-0.", "base-")
"""Beginnings of the names of the files of records."""
EDITS = {
    "a score": (r'("scores": \{.*?"map":\[)[\d.e-]+', r"\g<1>0.987"),
    "an interval": (r'("scores": \{.*?"map":\[[\d.e-]+,)[\d.e-]+', r"\g<1>0.123"),
    "the commit": (r'("commit":)("[^"]*"|null)', r'\g<1>"1234567"'),
    "a cost": (r'("training_cost":)[\d.e-]+', r"\g<1>7"),
    "the key": (r'("key": ")[0-9a-f]', r"\g<1>x"),
}  # fmt: skip
"""Changes that somebody may make in a record by hand."""
BASE_EDITS = {
    "a bound": (r'("upper": ?\{.*?"map": ?\[?)[\d.e-]+', r"\g<1>0.101"),
    "the fingerprint": (r'("fingerprint":")[0-9a-f]', r"\g<1>x"),
    "a size": (r'("dim":)\d+', r"\g<1>7"),
}  # fmt: skip
"""Changes in what the records of a board share."""


def test_every_file_of_the_records(undisturbed, forks, tmp_path, campaign):
    root, whole = undisturbed
    one = campaign("damage-records", "records and details files, harmed or edited by hand")
    scratch = Scratch(tmp_path / "scratch")
    right, run = whole[0]
    kept = root / "out-campaign"
    files = sorted(p.relative_to(kept) for p in kept.rglob("*") if p.name.startswith(KEPT))
    assert len(files) == 3 * (1 + len(METHODS)) + 2  # the record, its details, its queries; bases
    whole_table, _ = table(kept, forks, scratch)
    sound = {file: whole_table | without(file, kept, forks, scratch) for file in files}
    edited: set[str] = set()
    for file in files:
        edits = BASE_EDITS if file.name.startswith("base") else EDITS
        text = (kept / file).read_text() if file.suffix == ".json" else ""
        here = [name for name, (pattern, _) in edits.items() if re.search(pattern, text, re.S)]
        edited.update(here)
        for damage in (*DAMAGES, *here):
            out = tmp_path / "out"
            shutil.copytree(kept, out)
            if damage in DAMAGES:
                others = [f for f in files if f.suffix == file.suffix and f != file]
                other = next((f for f in others if f.name == file.name), others[0])
                DAMAGES[damage](out / file, out / other)
            else:
                put(out / file, _edited((out / file).read_text(), *edits[damage]).encode())
            where = f"{file.parent.name}/{file.name} {damage}"
            shared = file.name.startswith("base") and file.suffix == ".json"
            shown, found = table(out, forks, scratch, (0, 2) if shared else (0,))
            found += [Finding("wrong", f"shown: {x[:99]}") for x in sorted(shown - sound[file])[:3]]
            outcome = forks.run(run.case(out), scratch, LIMIT)
            found += process(outcome, (0,), LIMIT)
            if outcome.code == 0:
                found += differences(out, right)
                if file.parent.name not in outcome.errors and not unseen(file, damage):
                    found.append(Finding("silent", "the damage is not told"))
                if table(out, forks, scratch)[0] != whole_table:
                    found.append(Finding("kept", "the records are still damaged"))
            one.add(where, found, told=int(not found))
            shutil.rmtree(out)
    assert edited == EDITS.keys() | BASE_EDITS.keys()


def unseen(file: Path, damage: str) -> bool:
    """Tell a place with nothing to be told: no record, or a whole one in the place of another."""
    return damage == "deleted" or (damage == "swapped" and file.suffix == ".json")


def without(file: Path, kept: Path, forks, scratch) -> set[str]:
    """Table without such a record: lines of all methods have another place."""
    rest = scratch.tmp / "rest"
    shutil.copytree(kept, rest)
    (rest / file).unlink()
    shown, _ = table(rest, forks, scratch)
    shutil.rmtree(rest)
    return shown


def table(
    folder: Path, forks, scratch, codes: tuple[int, ...] = (0,)
) -> tuple[set[str], list[Finding]]:
    """Lines of the table of a folder's records, and what is wrong with how they came.

    Where the base of all records is damaged there is no record, and exit code 2.
    """
    words = ("table", str(folder), "--format=csv", "--metrics=all", "--cases=all")
    outcome = forks.run(Case(words), scratch)
    return set(outcome.out.decode().splitlines()), list(process(outcome, codes, 10.0))
