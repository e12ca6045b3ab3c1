"""Gaps that ``bench submit`` names, and the bundle that it writes when there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.toy_runs import run_toy_seeds

from benchmark.config import registry
from benchmark.config.files import read_sealed
from benchmark.errors import BenchError
from benchmark.harness import record_builder, submission
from benchmark.harness.submission import MANIFEST, PROMISED, VERIFIED, gather, write_bundle
from benchmark.records.files import read_record
from benchmark.records.provenance import code_version
from benchmark.records.record import record_path
from benchmark.records.submissions import validate

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clean(monkeypatch):
    """A checkout without local changes, and a method that ``bench check`` finds nothing in."""
    monkeypatch.setattr(submission, "check_method", lambda *_: iter(["checked"]))
    version = code_version().model_copy(update={"dirty": False, "commit": "0" * 40})
    for module in (submission, record_builder):
        monkeypatch.setattr(module, "code_version", lambda: version)


def test_work_of_another_recipe_is_told_without_the_data():
    """Of a track whose photographs are not here, too."""
    path = record_path(ROOT / "results", "extended-class", "grocery", "bct", 1)
    record = read_record(path)
    assert not [*submission.other_than_today(record)]
    recipe = record.recipe.model_copy(update={"clip": None})
    (line,) = submission.other_than_today(record.model_copy(update={"recipe": recipe}))
    assert "key: of other work than this code does" in line and "recipe.clip none, here 5" in line


@pytest.mark.parametrize("swept_folder", ["procrustes", "procrustes+query"])
def test_without_records(clean, tmp_path, swept_folder):
    said = []
    found = gather("procrustes", tmp_path, said.append)
    assert said == ["checked"] and found.records == ()
    # Its test is one for all maps, so it has none of its own.
    test, records = found.missing
    assert "test_procrustes.py" in test
    assert records == (
        f"no records: bench run --seeds 0-2 --precision 32-true --records-only --out {tmp_path} "
        "-m procrustes -p open-class"
    )
    swept = tmp_path / "changed" / "0a" / "measured" / "open-class" / "toy" / swept_folder
    swept.mkdir(parents=True)
    (swept / "seed-0.json").write_text("{}")
    said = gather("procrustes", tmp_path).missing[1]
    assert said.startswith(
        f"no records but those of --set or --sweep, below {tmp_path / 'changed'}"
    )
    with pytest.raises(BenchError, match="submit procrustes: no test"):
        write_bundle(found, tmp_path, tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_faults_of_the_method_and_local_changes(monkeypatch, tmp_path):
    def faulty(*_):
        yield "trained"
        raise BenchError("check procrustes: not finite: convert")

    monkeypatch.setattr(submission, "check_method", faulty)
    version = code_version().model_copy(update={"dirty": True})
    monkeypatch.setattr(submission, "code_version", lambda: version)
    missing = gather("procrustes", tmp_path).missing
    assert missing[0] == "check procrustes: not finite: convert"
    assert any("uncommitted changes" in each for each in missing)
    with pytest.raises(BenchError, match="unknown method 'l3'"):
        gather("l3", tmp_path)


def test_words_of_the_template_are_missing_ones(clean, monkeypatch, tmp_path):
    source = b'"""Mine."""\n\npaper = "Authors, Title, Venue Year"\n'
    monkeypatch.setattr(registry.MethodFile, "source", property(lambda _: source))
    told, *_ = gather("procrustes", tmp_path).missing
    assert told == "procrustes.py still has words of its template: 'Authors, Title, Venue Year'"


@pytest.mark.slow
def test_from_missing_to_a_bundle(clean, tmp_path):
    results, out = tmp_path / "results", tmp_path / "bundle"
    run_toy_seeds(["l2"], results, tmp_path / "store", seeds=[0, 1])
    (line,) = gather("l2", results).missing
    assert "no seed 2: bench run" in line and "-m l2 -p extended-data -t toy" in line
    run_toy_seeds(["l2"], results, tmp_path / "store", seeds=[2])
    found = gather("l2", results)
    assert found.missing == () and len(found.records) == len(found.beside) == 3
    text = write_bundle(found, results, out).read_text()
    assert text.startswith("# Add `l2`\n") and "| l2 |" in text
    assert "bench run -m l2 -p extended-data -t toy --seeds 0-2" in text
    mixed = [
        replace(each, record=each.record.model_copy(update={"environment": {"precision": kind}}))
        for each, kind in zip(found.records, ("32-true", "bf16-mixed", "32-true"), strict=True)
    ]
    assert "--precision recipe" in submission.text(replace(found, records=tuple(mixed)))
    assert text.count("- [x] ") == len(VERIFIED) and text.count("- [ ] ") == len(PROMISED)
    manifest = read_sealed(out / MANIFEST, 2**20)
    assert manifest["source"] == f"sha256:{found.file.fingerprint}"
    assert len(manifest["records"]) == 3 and {*out.glob("*.py")} == {
        out / "l2.py", out / "test_l2.py",
    }  # fmt: skip
    assert validate(out).problems == ()
    with pytest.raises(BenchError, match="exists already"):
        write_bundle(found, results, out)
    # A record that is altered behind its seal is no longer handed in.
    path = results / found.records[0].path.relative_to(results)
    value = json.loads(path.read_text())
    path.write_text(json.dumps(value | {"seed": 5}))
    with pytest.raises(BenchError, match="edited since"):
        gather("l2", results)
