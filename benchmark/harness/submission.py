"""A method, its test and its records put together for a pull request."""

import ast
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from benchmark.config import registry
from benchmark.config.files import plain_io_errors, write_sealed, write_whole
from benchmark.config.new_method import placeholders
from benchmark.config.places import real
from benchmark.config.registry import MethodFile
from benchmark.errors import BenchError
from benchmark.harness.checking.method import check_method
from benchmark.harness.published_models import read_published
from benchmark.harness.repeating import other_work, request_of
from benchmark.records.details_files import details_path
from benchmark.records.files import StoredRecord, find_records
from benchmark.records.provenance import code_version
from benchmark.records.record import Record
from benchmark.records.slim import bases
from benchmark.records.submissions import SEEDS, validate
from benchmark.records.verified import verification_path
from benchmark.report import record_tables, render

MANIFEST, TEXT = "submission.json", "pull-request.md"
TESTED = "`tests/methods/test_NAME.py` passes, and asserts something."
VERIFIED = (
    "`bench check NAME` finds nothing.",
    TESTED,
    "Every protocol has seeds 0 to 2, on unmodified tracks, from a clean commit.",
    "`bench validate` finds nothing in its records, which it takes for new ones.",
)
"""Checks of ``bench submit``; the templates of issues and pull requests end in the same."""
COMPARED = (
    "`tests/methods/test_NAME.py` compares the method with its paper's equation, written apart."
)
PROMISED = (
    COMPARED,
    "Settings were chosen on training classes, never on evaluation queries.",
    "The method may be published under this repository's licence.",
)
"""Points that no command can verify."""
_LIKE_THE_BOARD = f"--seeds {SEEDS[0]}-{SEEDS[-1]} --precision 32-true --records-only"
"""In another precision there is no published old model, and no rank beside the core board's."""
Step = Callable[[str], object]
_PATIENCE = 1800.0
"""Seconds that a method's test may take."""


@dataclass(frozen=True)
class Submission:
    """Findings of ``bench submit``."""

    file: MethodFile  # the adapter
    records: tuple[StoredRecord, ...]  # of the method and its variants
    beside: tuple[StoredRecord, ...]  # of ``independent``, the same protocols, tracks and seeds
    missing: tuple[str, ...]  # what has to be done first, in words


def other_than_today(record: Record) -> Iterator[str]:
    """Reasons that a new record is not what this code would compute.

    Where a track's data is not here, names, versions, code, models and recipe alone are compared.
    """
    yield from _not_published(record)
    try:
        request = request_of(record, without_data=True)
    except BenchError as error:
        yield str(error)
        return
    without_data = request.setup.track.needs_root
    differences = (
        "; ".join(request.other_versions(record)) if without_data else other_work(record, request)
    )
    if differences:
        yield f"key: of other work than this code does, run it again: {differences}"


def _not_published(record: Record) -> Iterator[str]:
    """Models that a record says it took from the published ones, which they are not among."""
    taken = [title for title, stage in record.run.stages.items() if stage.published]
    published = read_published() if taken else None
    if published is None:
        return
    known = {model.facts.checkpoint for model in published.index.models.values()}
    for title in taken:
        if record.checkpoints.get(title) not in known:
            yield f"run.stages: '{title:.80}': no published model has the hash in checkpoints"


def gather(name: str, results: Path, step: Step = lambda line: None) -> Submission:
    """Check a method, find its records, and list what is missing; BenchError if there is none.

    ``step`` is called with a line for each thing that is right.
    """
    file = registry.method_file(name)
    missing = [*_faults(file, step)]
    found = _records(results, name)
    missing += _missing_seeds(name, found, results)
    homes = {real(s.path.parent.with_name("independent") / s.path.name) for s in found}
    beside = [s for s in _records(results, "independent") if real(s.path) in homes]
    if found and not missing:
        missing += _invalid(found, beside, results)
        if not missing:
            step(f"{len(found)} records: schema, places, scores, details, versions")
    return Submission(file, tuple(found), tuple(beside), tuple(missing))


def _faults(file: MethodFile, step: Step) -> Iterator[str]:
    """Faults of the adapter, its test, and the checkout."""
    try:
        for line in check_method(file.id, "open-class"):
            step(line)
    except BenchError as error:
        yield str(error)
    if left := placeholders(file.source.decode()):
        yield f"{file.path.name} still has words of its template: {left}"
    test = test_file(file)
    if test is None:
        step(f"{file.id} is of another package: its test is not run here")
    elif not test.is_file():
        yield f"no test {test.name} in {test.parent}: compare the method with its equation"
    else:
        try:
            n = run_test(test)
            step(
                f"{test.name}: {n} test{'s pass' if n > 1 else ' passes'}; whether one compares "
                "the method with its paper's equation, no command can know"
            )
        except BenchError as error:
            yield str(error)
    if code_version().dirty:
        yield "uncommitted changes: commit the method, then run it, so that its records name it"


def test_file(file: MethodFile) -> Path | None:
    """Place of the test of a method of this checkout; ``None`` of other packages' methods."""
    if file.module.partition(".")[0] != "methods":
        return None
    return file.path.parents[1] / "tests" / "methods" / f"test_{file.path.stem}.py"


def _records(results: Path, name: str) -> list[StoredRecord]:
    """Records of a method and its variants; damaged ones of others do not matter here."""
    top = results / "measured"
    folders = sorted(path for path in top.glob("*/*/*") if path.name.partition("+")[0] == name)
    return [stored for folder in folders for stored in find_records(folder)]


def _missing_seeds(name: str, found: Sequence[StoredRecord], results: Path) -> Iterator[str]:
    """Commands that compute the records that are not there."""
    run = f"bench run {_LIKE_THE_BOARD} --out {results}"
    if not found:
        places = (f"*/measured/*/*/{folder}/seed-*.json" for folder in (name, f"{name}+*"))
        some = any(any((results / "changed").glob(place)) for place in places)
        swept = f" but those of --set or --sweep, below {results / 'changed'}"
        yield f"no records{swept * some}: {run} -m {name} -p open-class"
    rows: dict[tuple[str, str, str], set[int]] = {}
    for record in (stored.record for stored in found):
        rows.setdefault((record.method, record.protocol, record.track), set()).add(record.seed)
    for (method, protocol, track), seeds in sorted(rows.items()):
        if not {*SEEDS} <= seeds:
            names = ", ".join(str(seed) for seed in SEEDS if seed not in seeds)
            yield f"no seed {names}: {run} -m {method} -p {protocol} -t {track}"


def _invalid(
    found: Sequence[StoredRecord], beside: Sequence[StoredRecord], results: Path
) -> Iterator[str]:
    """Faults of the records, as ``bench validate --against`` names them in a pull request."""
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as folder:
        copy, nothing = Path(folder, "records"), Path(folder, "nothing")
        nothing.mkdir()
        copy_records([*found, *beside], results, copy)
        for problem in validate(copy, nothing, other_than_today).problems:
            yield str(problem).replace(f"{copy}/", f"{results}/")


def copy_records(records: Iterable[StoredRecord], results: Path, target: Path) -> None:
    """Copy records below ``results``, with their details, badges and bases, to another folder."""
    for stored in records:
        beside = details_path(stored.path), verification_path(stored.path)
        for path in (stored.path, *beside, *bases(stored.path)):
            if path.is_file():
                copy = target / path.relative_to(results)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


def write_bundle(submission: Submission, results: Path, out: Path) -> Path:
    """Write a submission as a folder; gives the path of the pull request's text.

    It holds the records, the adapter and its test, their fingerprints and the text. A BenchError if
    something is missing, the folder is there already, or the disk is full.
    """
    if submission.missing:
        raise BenchError(f"submit {submission.file.id}: {'; '.join(submission.missing)}")
    if out.exists():
        raise BenchError(f"--out: {out} exists already")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        with plain_io_errors(out.parent):
            part.mkdir(parents=True)
            copy_records([*submission.records, *submission.beside], results, part)
            for path in filter(None, (submission.file.path, test_file(submission.file))):
                shutil.copyfile(path, part / path.name)
            write_sealed(part / MANIFEST, _manifest(submission, results))
            write_whole(part / TEXT, text(submission))
            part.replace(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return out / TEXT


def _manifest(submission: Submission, results: Path) -> Mapping[str, object]:
    file, adapter = submission.file, submission.records[0].record.adapter
    return {
        "format": 1, "method": file.id, "module": file.module,
        "package": adapter.package if adapter else "", "source": f"sha256:{file.fingerprint}",
        "records": {
            str(stored.path.relative_to(results)): stored.record.seal
            for stored in submission.records
        },
    }  # fmt: skip


def text(submission: Submission) -> str:
    """The text of the pull request: the idea, its numbers, how to repeat them, the checklist."""
    file = submission.file
    chosen = [stored.record for stored in (*submission.beside, *submission.records)]
    methods: dict[tuple[str, str], set[str]] = {}
    for r in (stored.record for stored in submission.records):
        methods.setdefault((r.protocol, r.track), set()).add(r.method)
    chosen.sort(key=lambda r: (r.method != "independent", r.method, r.seed))
    tables = record_tables(chosen)
    alike = all(r.environment.get("precision") == "32-true" for r in chosen)
    flags = _LIKE_THE_BOARD if alike else _LIKE_THE_BOARD.replace("32-true", "recipe")
    commands = [
        f"    bench run -m {','.join(sorted(names))} -p {protocol} -t {track} {flags} --out results"
        for (protocol, track), names in sorted(methods.items())
    ]
    elsewhere = () if test_file(file) else (TESTED, COMPARED)  # of another package
    machines = sorted({r.environment.get("cpu", "an unnamed machine") for r in chosen})
    return "\n".join([
        f"# Add `{file.id}`", "", file.summary, "", "## Numbers", "",
        render(tables, "markdown").strip(), "", f"Measured on {', '.join(machines)}.", "",
        "## Repeat it", "", *commands, "", f"Fingerprint of the adapter: `{file.fingerprint}`", "",
        "## Checklist", "", checklist(file.path.stem, file.id, VERIFIED, elsewhere),
    ])  # fmt: skip


def checklist(
    stem: str = "NAME", name: str = "NAME", done: Sequence[str] = (), without: Sequence[str] = ()
) -> str:
    """The checklist ``without`` some lines; those that are ``done`` the command has verified."""
    chosen = (line for line in (*VERIFIED, *PROMISED) if line not in without)
    lines = [f"- [{'x' if line in done else ' '}] {line}" for line in chosen]
    filled = [line.replace("test_NAME", f"test_{stem}").replace("NAME", name) for line in lines]
    return "\n".join(filled) + "\n"


def run_test(path: Path) -> int:
    """Run a test file; how many of its tests pass, whatever they compare.

    A BenchError if it has no test, asserts nothing, or one fails or does not end.
    """
    if importlib.util.find_spec("pytest") is None:
        raise BenchError(f"{path.name}: cannot be run without the package pytest")
    if not _asserts(path):
        raise BenchError(f"{path.name}: asserts nothing: compare the method with its equation")
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as folder:
        report = Path(folder, "report.xml")
        words = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider",
            f"--junitxml={report}", str(path),
        ]  # fmt: skip
        try:
            done = subprocess.run(
                words, cwd=path.parents[2], capture_output=True, text=True, timeout=_PATIENCE,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{path.name}: does not end within {_PATIENCE:.0f} s") from error
        if done.returncode or not report.is_file():
            said = [line for line in done.stdout.splitlines() if line.strip()][-1:] or ["no word"]
            raise BenchError(f"{path.name}: expected every test to pass, pytest says: {said[0]}")
        n_passed = _passed(report)
    if not n_passed:
        raise BenchError(f"{path.name}: expected a test that passes, all are skipped")
    return n_passed


def _asserts(path: Path) -> bool:
    """Tell a file that has a test with an assertion, or a call of one."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise BenchError(f"{path.name}: no Python: {error}") from error
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                name = getattr(node, "id", getattr(node, "attr", ""))
                if isinstance(node, ast.Assert) or name.startswith("assert") or name == "raises":
                    return True
    return False


def _passed(report: Path) -> int:
    """Tests that were neither skipped nor expected to fail."""
    cases = ElementTree.parse(report).iter("testcase")
    return sum(not len(case) or all(each.tag.startswith("system") for each in case)
               for case in cases)  # fmt: skip
