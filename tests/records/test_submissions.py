"""Records handed in: sound ones pass, and whatever is altered is named, file by file."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import hostile
from support.command import call
from support.hostile import Sample, in_place
from support.hostile.engine import other_bytes, other_values
from support.hostile.records import (
    DETAILS,
    NEIGHBOUR,
    RECORD,
    SEALED,
    complete,
    with_parts,
)  # fmt: skip
from support.stored import write

from benchmark.config.files import bytes_digest
from benchmark.errors import BenchError
from benchmark.records.details_files import details_path, queries_path
from benchmark.records.files import read_record
from benchmark.records.slim import bases
from benchmark.records.submissions import earlier, validate
from benchmark.records.verified import one_query

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
PLACE = "measured/open-class/glyphs-high"
FILLED = "measured/backfill/glyphs/bct/seed-0.json"


@pytest.fixture
def root(tmp_path) -> Path:
    """Two committed records, and the bounds of one."""
    root = tmp_path / "results"
    for name in ("keep-old", "independent"):
        # Badges are of the record as it is; other seeds may come.
        left = shutil.ignore_patterns("verified-*", "seed-[1-9]*")
        target = tmp_path / "results" / PLACE / name
        shutil.copytree(RESULTS / PLACE / name, target, ignore=left)
        for path in bases(RESULTS / PLACE / name / "seed-0.json"):
            shutil.copyfile(path, root / path.relative_to(RESULTS))
    filled = tmp_path / "results" / FILLED
    filled.parent.mkdir(parents=True)
    there = RESULTS / FILLED
    for path in (there, details_path(there), *bases(there)):  # other seeds may come
        shutil.copyfile(path, root / path.relative_to(RESULTS))
    return root


def of(root: Path, name: str = "keep-old") -> Path:
    return root / PLACE / name / "seed-0.json"


def alter(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a record, and give it the seal that fits: that guards against mistakes alone."""
    value = read_record(path).as_json()
    change(value)
    write(path, value)


def problems(root: Path, base: Path | None = None, **options: Any) -> list[str]:
    found = [str(problem) for problem in validate(root, base, **options).problems]
    assert all("\n" not in line and line.isprintable() for line in found)
    return found


def test_committed_records_are_sound(root):
    found = validate(root)
    assert len(found.records) == 3 and found.problems == () and found.new == ()
    assert found.changed == 0


def test_records_of_changed_settings_are_counted(root):
    path = root / "changed" / "0a" / PLACE / "keep-old" / "seed-0.json"
    path.parent.mkdir(parents=True)
    write(path, read_record(of(root)).as_json() | {"changed": {"l2.weight": 3}})
    found = validate(root)
    assert found.problems == () and (len(found.records), found.changed) == (3, 1)
    code, out, _ = call("validate", root)
    assert code == 0 and "changed: 1; they are of no board" in out
    (said,) = [each for each in problems(root / "changed" / "0a") if "--set" in each]
    assert said.endswith("expected nothing set by --set or --first-seed, got l2.weight")
    assert problems(of(root)) == []
    shutil.rmtree(root / "measured")  # what is looked at is not said to be passed over
    assert validate(root).changed == 0 and problems(root)


@pytest.mark.slow
def test_all_committed_records_are_sound():
    assert problems(RESULTS) == []


def test_a_study_has_tracks_of_its_own(tmp_path):
    """Beside its records, and nowhere else: no other folder can bring a track along."""
    study, track = RESULTS / "studies/rendered", "glyphs-photographic"
    place = f"measured/extended-class/{track}/procrustes"
    for folder, fault in (("studies", []), ("results", [f"track: unknown track '{track}'"])):
        root = tmp_path / folder / "rendered"
        shutil.copytree(study / place, root / place)
        for path in bases(study / place / "seed-0.json"):
            shutil.copyfile(path, root / path.relative_to(study))
        shutil.copy(study / f"{track}.yaml", root)
        found = [line.partition(".json: ")[2].partition(";")[0] for line in problems(root)]
        assert found == fault


def moved(value, by=0.001):
    value["scores"]["new/old"]["cmc_at_1"] += by


ALTERED = {
    "another method": (lambda v: v.update(method="bct"), "path: expected", "bct/seed-0.json"),
    "another seed": (lambda v: v.update(seed=3), "path: expected", "seed-3.json"),
    "protocol of tomorrow": (lambda v: v.update(protocol_version=9), "protocol_version", "got 9"),
    "track of yesterday": (lambda v: v.update(track_version=0), "track_version", "got 0"),
    "unknown protocol": (lambda v: v.update(protocol="open-clas"), "protocol", "'open-class'"),
    "unknown method": (lambda v: v.update(method="kept"), "method: unknown", "compatbench 0.1.0"),
    "a score of 0.1 points more": (moved, "new/old cmc_at_1", "as its queries say"),
    "above one": (lambda v: moved(v, 2.0), "scores.new/old.cmc_at_1"),
    "unknown metric": (lambda v: v["scores"]["new/new"].update(mop=0.5), "new/new", "'mop'"),
    "no cross-test": (lambda v: v["scores"].pop("new/old"), "case new/old is missing"),
    "no verification": (
        lambda v: [s.pop(m) for s in v["scores"].values() for m in [*s] if m.startswith("tar_")],
        "none of task verification", "tar_at_far_"),
    "a falling curve": (
        lambda v: v["scores"]["new/new"].update({"tpir_at_fpir_1e-2": 0.999}), "is above"),
    "another verdict": (lambda v: v["compatible"].update(map=True), "compatible: map", "got True"),
    "another gain": (lambda v: v["update_gain"].update(map=0.4), "update_gain: map", "got 0.4"),
    "a lower bound": (lambda v: v["bounds"]["lower"].update(map=0.1), "lower is not old/old"),
    "another bound": (lambda v: v.update(upper="lower"), "upper: lower, of a protocol"),
    "changed settings": (lambda v: v.update(changed={"old.dim": 8}), "changed", "old.dim"),
    "other details": (lambda v: v.update(details="sha256:" + "0" * 64), "hashes differ"),
    "no details": (lambda v: v.update(details=None), "details: missing"),
    "interval elsewhere": (
        lambda v: v["intervals"]["new/new"].update(map=[0.0, 0.1]), "outside of its interval"),
}  # fmt: skip


def test_fewer_impostors_than_an_error_rate_takes_leave_no_score(root):
    """As of a small folder of photographs."""
    change, words, _ = ALTERED["no verification"]
    found = {}
    for pairs in (99, 100):

        def altered(value, pairs=pairs):
            change(value)
            for counts in value["counts"].values():
                counts["n_impostor"] = pairs

        alter(of(root), altered)
        found[pairs] = any(words in each for each in problems(of(root)))
    assert found == {99: False, 100: True}


@pytest.mark.parametrize("name", ALTERED)
def test_what_is_altered_is_named(name, root):
    change, *words = ALTERED[name]
    alter(of(root), change)
    found = problems(root)
    assert found and all(line.startswith(str(of(root))) for line in found)
    for word in words:
        assert any(word in line for line in found), found


def test_curves_end_where_the_scores_are(root):
    def change(value):
        (curves,) = [value["backfilling"]["orders"]["random"]["curves"]]
        curves["map"][0] += 0.01
        curves["cmc_at_1"][-1] -= 0.01

    alter(root / FILLED, change)
    found = problems(root)
    assert any("random map begins at" in line for line in found)
    assert any("random cmc_at_1 ends at" in line for line in found)


def test_numbers_of_curves_are_those_of_the_curves(root):
    def change(value):
        (order,) = [value["backfilling"]["orders"]["random"]]
        order["area"]["cmc_at_1"] += 0.01
        order["worst"]["map"] -= 0.01

    alter(root / FILLED, change)
    found = problems(root)
    assert any("random cmc_at_1 area: expected" in line for line in found)
    assert any("random map worst: expected" in line for line in found)


def test_bounds_are_those_of_independent_beside(root):
    """Of a method whose networks they are; with others they may differ."""
    alter(of(root), lambda v: v["bounds"]["upper"].update(map=v["bounds"]["upper"]["map"] + 0.01))
    assert any(
        "upper map: expected" in line and "of independent" in line for line in problems(root)
    )

    def others(value):
        value["checkpoints"] = dict.fromkeys(value["checkpoints"], "sha256:" + "0" * 64)

    alter(of(root), others)
    assert not any("of independent" in line for line in problems(root))


def test_of_another_processor_one_query_may_fall_the_other_way(root):
    """And no two: with other instructions the last bits of vectors differ."""
    its = read_record(of(root))
    one = one_query(its) / 100
    for other, moved_by, told in (("amx", one, False), ("amx", 3 * one, True), (None, one, True)):

        def change(value, other=other, moved_by=moved_by):
            value["bounds"]["upper"]["map"] = its.bounds["upper"]["map"] - moved_by
            instructions = other or its.environment["instructions"]
            value["environment"] = its.environment | {"instructions": instructions}

        alter(of(root), change)
        found = any("upper map: expected" in line for line in problems(root))
        assert found == told, (other, moved_by)


def test_a_record_is_not_two_seeds(root):
    path = of(root)
    for name in (path.name, details_path(path).name):
        shutil.copy(path.with_name(name), path.with_name(name.replace("seed-0", "seed-1")))
    alter(path.with_name("seed-1.json"), lambda v: v.update(seed=1, first_seed=1))
    found = problems(root)
    assert any("seed-1.json: key: that of seed-0.json" in line for line in found)


def test_all_results_by_query_do_not_stand_for_the_details(root):
    path = of(root)
    content = details_path(path).read_bytes()
    alter(path, lambda v: v.update(queries=bytes_digest(content)))
    queries_path(path).write_bytes(content)
    assert not any("missing" in line for line in problems(root))
    details_path(path).unlink()
    assert any("missing, though seed-0.json has its hash" in line for line in problems(root))


def test_edited_without_a_seal_that_fits(root):
    of(root).write_text(of(root).read_text().replace('"seed": 0', '"seed": 1', 1))
    assert "edited since it was written" in problems(root)[0]


def test_other_files_and_links(root):
    folder = of(root).parent
    (folder / "notes.txt").write_text("x")
    (folder / "seed-9.details.xz").write_bytes(b"")
    (folder / "seed-1.json").symlink_to(of(root))
    found = problems(root)
    assert len(found) == 3
    for line, words in zip(
        found, ("records, their details", "got a link", "no record"), strict=True
    ):
        assert words in line


def test_a_folder_without_records_and_none_at_all(tmp_path):
    assert "no records" in problems(tmp_path)[0]
    with pytest.raises(BenchError, match="no file or folder"):
        validate(tmp_path / "missing")


def test_nothing_is_removed_or_silently_changed(root, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(root, base)
    assert problems(root, base) == []
    shutil.rmtree((root / FILLED).parent)
    *unused, gone, of_it = problems(root, base)
    assert "removed" in gone and "removed" in of_it
    # What it stood on goes, too: of bases nobody says that one is missing.
    assert len(unused) == 2 and all("no record stands on it" in line for line in unused)
    for path in (root / FILLED).parents[1].glob("base-*"):
        path.unlink()
    assert len(problems(root, base)) == 2
    # The same work with another score, whatever its details say.
    alter(of(root), moved)
    alter(of(root), lambda v: v["bounds"]["upper"].update(map=0.5))
    for part in ("new/old cmc_at_1: changed from", "bounds: upper map: changed from"):
        assert any(part in line and "the work is the same" in line for line in problems(root, base))


def test_new_records_need_all_seeds_bounds_and_a_clean_commit(root, tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    alter(of(root), lambda v: v["run"]["code"].update(dirty=True))
    found = problems(root, base, more=lambda record: ["asked"] * (record.method == "bct"))
    assert any("keep-old: expected seeds 0 to 2, without 1, 2" in line for line in found)
    assert any("keep-old/seed-0.json: run.code: expected a clean commit" in line for line in found)
    assert any("bct/seed-0.json: asked" in line for line in found)
    (beside,) = [line for line in found if "record of independent" in line]
    assert "backfill" in beside
    for path in of(root, "independent").parent.iterdir():
        path.unlink()
    assert any("keep-old/seed-0.json: expected the record of independent" in line
               for line in problems(root, base))  # fmt: skip


def test_a_record_alone_is_compared_with_what_it_was(root, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(root, base)
    before = base / PLACE / "keep-old"
    assert problems(of(root), before) == []
    alter(of(root), moved)
    assert any("changed from" in line for line in problems(of(root), before))


def test_a_base_of_another_level_is_refused(root, tmp_path):
    base = tmp_path / "base"
    shutil.copytree(root, base)
    with pytest.raises(BenchError, match="--against: expected a folder of the level of") as error:
        validate(root / PLACE, base)
    assert f"{root / PLACE}, with records such as " in str(error.value)
    assert f"got {base / 'measured'} with open-class/glyphs-high/" in str(error.value)
    assert problems(root / PLACE, base / PLACE) == []


def test_a_git_revision_is_a_base(root, tmp_path):
    def git(*words):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True,
            capture_output=True,
        )  # fmt: skip

    git("init", "-b", "main")
    (tmp_path / "results" / "link").symlink_to("/etc/hostname")  # which is no record
    git("add", "results")
    git("commit", "-m", "records")
    (tmp_path / "results" / "link").unlink()
    of(root, "independent").unlink()
    with earlier("main", root) as base:
        assert (base / PLACE / "keep-old" / "seed-0.json").is_file()
        (first, *_) = problems(root, base)
    assert "independent" in first
    (tmp_path / "new").mkdir()
    with earlier("main", tmp_path / "new") as base:
        assert list(base.iterdir()) == []
    for name in ("mian", "--output=x"):
        with (
            pytest.raises(BenchError, match=f"a folder or a git revision, got '{name}'"),
            earlier(name, root),
        ):
            pass


def test_hostile_records_are_refused_file_by_file(tmp_path):
    """Some values of another kind, details cut and changed, and all that may lie in their place.

    The whole corpus is looked at by the slow tests beside this one.
    """
    beside = {NEIGHBOUR: complete(NEIGHBOUR)}
    records = other_values(complete(method="evil"), SEALED, 8)
    chosen = [
        *(Sample("record", name, {RECORD: raw, **beside}) for name, raw in records),
        *in_place("record", RECORD, beside),
        *(Sample("details", name, with_parts(details=raw))
          for name, raw in other_bytes(with_parts()[DETAILS], most=4)),
        *in_place("details", DETAILS, with_parts()),
    ]  # fmt: skip
    assert len(chosen) > 40
    for i, sample in enumerate(chosen):
        folder = tmp_path / str(i)
        hostile.write(sample, folder)
        if "link-to-itself" in str(sample) or "folder" in str(sample):
            continue
        found = problems(folder)
        assert any("evil" in line or "seed-0" in line for line in found), sample


def test_a_record_is_not_changed_by_looking(root):
    before = {path: path.read_bytes() for path in root.rglob("*.*")}
    problems(root)
    assert before == {path: path.read_bytes() for path in root.rglob("*.*")}
    assert read_record(of(root)).method == "keep-old"
