"""The corpus of hostile files through every verb that reads their kind."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import hostile
from support.detectors import Finding, findings
from support.hostile import Sample, corpus, records
from support.hostile.archives import TAR, ZIP
from support.hostile.arrays import VECTORS
from support.hostile.ids import FILES
from support.hostile.modules import MODULE
from support.isolated import SECONDS, Case, Forks, Outcome, Scratch

pytestmark = pytest.mark.slow

Cases = Iterator[Case]
FORMS = ("terminal", "csv", "markdown", "latex")
LARGEST = 120.0
"""Seconds of a run of what was accepted: that is work, bounded as for anybody."""
SMALL = (
    "--set=recipe.epochs=1", "--set=recipe.transform_steps=5", "--set=old.backbone=convnet-4",
    "--set=new.backbone=convnet-4", "--set=old.dim=8", "--set=new.dim=8",
)  # fmt: skip
SETTING = {"market1501": "market1501", "ms1mv3_ijbc": "ijbc-1v1"}
"""Dataset -> a protocol that suits it; others suit ``extended-class``."""


def form_for(sample: Sample) -> str:
    """The form of a table for a file: each has a quarter of them."""
    return FORMS[zlib.crc32(sample.name.encode()) % len(FORMS)]


def of_records(sample: Sample, scratch: Scratch) -> Cases:
    runs, out = str(scratch.input), str(scratch.out)
    yield Case(("table", runs, "--format", form_for(sample)))
    yield Case(("table", runs, "--metrics", "all", "--cases", "all"))
    yield Case(("show", runs))
    yield Case(("show", runs, "--json"))
    yield Case(("compare", "evil", "bct", runs))
    yield Case(("validate", runs))
    if records.RECORD in sample.files:
        evil = f"{runs}/{records.RECORD}"
        yield Case(("show", evil))
        yield Case(("compare", evil, f"{runs}/{records.NEIGHBOUR}"))
        runs = evil  # what is refused draws nothing
    yield Case(("plot", runs, "--out", f"{out}/plots", "--metrics", "cmc_at_1"))
    yield Case(("leaderboard", runs, "--out", f"{out}/site"))


def of_details(sample: Sample, scratch: Scratch) -> Cases:
    runs, out = str(scratch.input), str(scratch.out)
    evil = f"{runs}/{records.RECORD}"
    yield Case(("show", runs))
    yield Case(("validate", runs))
    yield Case(("compare", evil, evil))
    yield Case(("leaderboard", runs, "--out", f"{out}/site"))
    yield Case((f"{runs}/{records.DETAILS}",), "support.jobs:details")


def of_protocols(sample: Sample, scratch: Scratch) -> Cases:
    yield Case(_run(scratch, f"--protocol={scratch.input}/evil.yaml", "--track=toy", "--dry-run"))


def of_tracks(sample: Sample, scratch: Scratch) -> Cases:
    track = f"--track={scratch.input}/evil.yaml"
    yield Case(_run(scratch, "--protocol=open-class", track, "--dry-run"))


def of_settings(sample: Sample, scratch: Scratch) -> Cases:
    yield Case(sample.words)


def of_published(sample: Sample, scratch: Scratch) -> Cases:
    yield Case(("published", str(scratch.input), "--format", form_for(sample)))


def of_modules(sample: Sample, scratch: Scratch) -> Cases:
    yield Case((str(scratch.input),), "support.jobs:convert")
    if sample.kind == "module":
        yield Case((str(scratch.input / MODULE),), "support.jobs:module")


def of_databases(sample: Sample, scratch: Scratch) -> Cases:
    return _converted(scratch, sample.words[0], ("npy",))


def of_vectors(sample: Sample, scratch: Scratch) -> Cases:
    return _converted(scratch, VECTORS, ("npy", "h5"))


def _converted(scratch: Scratch, name: str, endings: tuple[str, ...]) -> Cases:
    conversion = scratch.root / "sound"
    if not conversion.is_dir():
        sound = next(s for s in corpus("module") if s.name == "sound")
        hostile.write(sound, conversion)
    source = str(scratch.input / name)
    for ending in endings:
        yield Case(("convert", str(conversion), source, str(scratch.out / f"new.{ending}")))


def of_images(sample: Sample, scratch: Scratch) -> Cases:
    words = ("--protocol=open-class", "--track=folder", f"--data-root={scratch.input}", *SMALL)
    more = ("--set=recipe.precision=32-true", "--set=data.image_size=16")
    yield Case(_run(scratch, *words, *more, "--dry-run"))


def of_archives(sample: Sample, scratch: Scratch) -> Cases:
    (dataset,) = {str(path).partition("/")[0] for path in map(_text, sample.files)}
    root = str(scratch.input / dataset)
    yield Case((dataset, root, str(scratch.out)), "support.jobs:dataset")
    protocol = SETTING.get(dataset, "extended-class")
    track = dataset.replace("_", "-")
    words = (f"--protocol={protocol}", f"--track={track}", f"--data-root={root}", "--dry-run")
    yield Case(_run(scratch, *words))


def of_stores(sample: Sample, scratch: Scratch) -> Cases:
    store = f"--store={scratch.input}/store"
    for words in (("status",), ("verify",), ("clean",), ("clean", "--older-than=0")):
        yield Case(("store", *words, store), allowed=(scratch.input,))


VERBS: dict[str, Callable[[Sample, Scratch], Cases]] = {
    "record": of_records, "base": of_details, "details": of_details, "base-details": of_details,
    "protocol": of_protocols, "track": of_tracks, "settings": of_settings,
    "published": of_published, "module": of_modules, "conversion": of_modules,
    "vectors": of_vectors, "database": of_databases, "image": of_images,
    "archive": of_archives, "store": of_stores,
}  # fmt: skip


def _text(path: str | bytes) -> str:
    return path.decode("utf-8", "replace") if isinstance(path, bytes) else path


def _run(scratch: Scratch, *words: str) -> tuple[str, ...]:
    method = "--methods=independent"
    return ("run", method, "--device=cpu", f"--out={scratch.out}", *words)


def in_earnest(case: Case, outcome: Outcome) -> Case | None:
    """The run that a dry run was of, if that was accepted."""
    if case.args[0] != "run" or "--dry-run" not in case.args or outcome.code != 0:
        return None
    return Case(tuple(word for word in case.args if word != "--dry-run"))


@pytest.mark.parametrize("kind", hostile.MAKERS)
def test_hostile_files(kind, forks: Forks, scratch: Scratch, campaign):
    one = campaign(f"hostile-{kind}", f"hostile files of kind {kind} through every verb")
    codes: set[int | None] = set()
    accepted = 0
    for sample in corpus(kind):
        hostile.empty(scratch.input)
        hostile.write(sample, scratch.input)
        one.add(sample)
        own: set[int | None] = set()
        for case in VERBS[kind](sample, scratch):
            outcome = carry_out(case, sample, forks, scratch, one)
            own.add(outcome.code)
            if outcome.timed_out:
                break  # found; the other verbs would be as slow
            real = in_earnest(case, outcome)
            if real is not None and kind in ("protocol", "track", "image"):
                accepted += 1
                if accepted % EVERY.get(kind, 1) == 0:
                    carry_out(real, sample, forks, scratch, one, LARGEST)
        assert sample.name.partition("-")[0] != "sound" or 0 in own, (
            "no verb takes what nothing is wrong with"
        )
        codes |= own
    assert {0, 2} <= codes, "some are accepted and some refused, or nothing was tried"


@pytest.mark.parametrize("name", FILES)
def test_hostile_ids(name, forks: Forks, scratch: Scratch, campaign):
    one = campaign("hostile-ids", "small files whose ids unpack to gigabytes")
    file, make = FILES[name]
    make(scratch.input / file)
    (case,) = _converted(scratch, file, ("npz",))
    sample = Sample("ids", name)
    one.add(sample)
    assert carry_out(case, sample, forks, scratch, one).code == 2


EVERY = {"protocol": 4, "track": 4}
"""Of what is accepted, so many are one that is run in earnest."""


def carry_out(
    case: Case, sample: Sample, forks: Forks, scratch: Scratch, one, seconds: float = SECONDS
) -> Outcome:  # fmt: skip
    """A case of a sample, and all that is wrong with what it did."""
    before = scratch.state()
    outcome = forks.run(case, scratch, seconds)
    found = findings(outcome, scratch, before, seconds=seconds)
    left = sorted(scratch.out.iterdir()) if case.args[0] == "convert" and outcome.code else []
    found += [Finding("left", f"{path.name} after a refusal") for path in left]
    verb = case.args[0] if case.call == "support.jobs:bench" else case.call.partition(":")[2]
    one.add(f"{sample} [{verb}]", found, tried=0, calls=1, told=int(outcome.code == 2))
    hostile.empty(scratch.out)
    return outcome


def test_the_corpus_is_large_and_stays_the_same():
    def names(kind: str) -> list[str]:
        return [sample.name for sample in corpus(kind)]

    counts = {kind: names(kind) for kind in hostile.MAKERS}
    assert sum(map(len, counts.values())) >= 2278, "so many were tried before they were generated"
    assert names("record") == counts["record"]
    assert {ZIP, TAR} <= {path for s in corpus("archive") for path in s.files}


def test_what_lies_around_is_as_it_says(tmp_path: Path):
    sample = Sample("x", "y", {b"a/\xff": b"1", "b": hostile.Link("/dev/zero"),
                               "c": hostile.Pipe(), "d": hostile.Sparse(2**33)})  # fmt: skip
    hostile.write(sample, tmp_path)
    assert (tmp_path / "b").is_symlink() and (tmp_path / "c").is_fifo()
    assert (tmp_path / "d").stat().st_size == 2**33
    hostile.empty(tmp_path)
    assert not list(tmp_path.iterdir())
