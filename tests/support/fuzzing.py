"""Fuzzing of parsers: valid files, changed at random with their structure in mind.

What a parser is given is written to a file, as it reads files. It may refuse with a
:class:`~benchmark.errors.BenchError`, in time; anything else that comes out is a finding.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from support import hostile
from support.hostile import Sample, archives, arrays, configs, images, modules, records, stores
from support.hostile.engine import JSON, TEXTS, TOKENS, WRONG, Form, paths, removed, replaced

SECONDS = 10
"""That one file may take."""
ROUND = 100  # examples between two looks at the clock


@dataclass(frozen=True)
class Target:
    """A parser of files, and files that it takes."""

    name: str  # of the file
    seeds: Sequence[bytes]
    parse: Callable[[Path], object]
    form: Form = JSON
    structured: bool = True  # values are changed too


def targets() -> Mapping[str, Target]:
    """Every parser of foreign files; ``--set`` and ``published`` among them."""
    from benchmark.config.loading import load_protocol, load_track
    from benchmark.config.reading import parse_settings, read_yaml
    from benchmark.contract.conversion import Conversion
    from benchmark.data.base import read_options
    from benchmark.data.images import View, decode_view
    from benchmark.harness.store import Store
    from benchmark.models.module import load_module
    from benchmark.records.files import read_record
    from benchmark.records.published import read_published
    from benchmark.upgrade.formats import open_vectors
    from support.stored import read_details

    view = View(16, 16)
    sound, published = modules.sound_module(), configs.sound_published()
    kept = records.packed_record()
    table = next(name for name in published if name.endswith(".csv"))
    protocols = [configs.sound(name) for name in ("open-class.yaml", "backfill.yaml")]
    tracks = [configs.sound(f"tracks/{name}.yaml") for name in ("toy", "glyphs")]

    def formats(path: Path) -> None:
        for _ in open_vectors(path).vectors():
            pass

    def conversion(path: Path) -> None:
        (path.parent / modules.MODULE).write_bytes(sound)
        Conversion.load(path.parent)

    def text_settings(path: Path) -> None:
        parse_settings([path.read_bytes().decode("utf-8", "surrogateescape")])

    def numbers(path: Path) -> None:
        (path.parent / "papers.yaml").write_bytes(published["papers.yaml"])
        read_published(path.parent)

    def dataset(name: str) -> Callable[[Path], object]:
        return lambda path: read_options(name).load(path.parent)

    def stage(path: Path) -> None:
        Store(path.parents[2]).damage(path.parent.name)

    def part(name: str) -> Callable[[Path], object]:
        """A record and its details, of which a file is the fuzzed one."""

        def parse(path: Path) -> None:
            root = path.parent / "records"
            hostile.empty(root)
            hostile.write(Sample("", "", records.with_parts(**{name: path.read_bytes()})), root)
            read_record(root / records.RECORD)
            read_details(root / records.DETAILS)

        return parse

    def one(name: str, parse: Callable[[Path], object], form: Form | None, *seeds: Any) -> Target:
        return Target(name, seeds, parse, form or JSON, form is not None)

    return {
        "record": one("seed-0.json", read_record, records.SEALED, records.complete()),
        "base": one("part", part("base"), JSON, kept["base"]),
        **{name: one("part", part(name), records.details_form(kept[name]), kept[name])
           for name in ("details", "base_details")},
        "yaml": one("evil.yaml", read_yaml, configs.YAML, *protocols, *tracks),
        "protocol": one("evil.yaml", lambda p: load_protocol(str(p)), configs.YAML, *protocols),
        "track": one("evil.yaml", lambda p: load_track(str(p)), configs.YAML, *tracks[:1]),
        "settings": one("words", text_settings, None, b"old.dim=8", b"far=[0.1, 0.2]", b"a={b: 1}"),
        "module": one(modules.MODULE, load_module, modules.safetensors(sound), sound),
        "conversion": one(modules.META, conversion, JSON, modules.sound_meta(sound)),
        "vectors": one(arrays.VECTORS, formats, arrays.NPY, arrays.sound()),
        **{end[1:]: one(f"evil{end}", formats, None, *seeds) for end, seeds in _vectors()},
        "image": one("1.png", lambda p: decode_view(p, view, "x"), None,
                     *(images.encoded(images.picture(1), kind) for kind in images.KINDS)),
        "published": one(table, numbers, configs.CSV, published[table]),
        "omniglot": one("images_background.zip", dataset("omniglot"), None,
                        archives.zipped({"A1/character01/0011_01.png":
                                         images.encoded(images.picture(1))})),
        "cifar100": one("cifar-100-binary.tar.gz", dataset("cifar100"), None, archives.sound_tar()),
        "faces": one("train.rec", _faces, None, archives.sound_record()),
        "stage": one(stores.META.partition("/")[2], stage, records.SEALED, stores.sound()),
    }  # fmt: skip


def _vectors() -> Iterator[tuple[str, list[bytes]]]:
    """Files of vectors in each format, with ids and without."""
    from support.vector_files import READ, write

    rows = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for ending in READ:
            path, seeds = Path(folder, f"a{ending}"), []
            for ids in (None, list(range(20)), [f"item-{i}" for i in range(20)]):
                write(path, rows, ids)
                seeds.append(path.read_bytes())
            yield ending, seeds


def _faces(path: Path) -> None:
    from benchmark.data.recordio import read_faces

    path.with_suffix(".idx").write_text("0\t0\n1\t40\n")
    found, _ = read_faces(path, path.with_suffix(".idx"))
    for row in range(len(found)):
        found.read(row)


@st.composite
def changed(draw: Any, target: Target) -> bytes:
    """A valid file with some changes."""
    content = draw(st.sampled_from(list(target.seeds)))
    if target.structured and draw(st.booleans()):
        content = draw(_other_values(content, target.form))
    for _ in range(draw(st.integers(0, 6))):
        content = draw(_other_bytes(content))
    return target.form.repair(content)


@st.composite
def _other_values(draw: Any, content: bytes, form: Form) -> bytes:
    """A file with a few of its values replaced or removed, and checksums that fit again."""
    value = form.loads(content)
    for _ in range(draw(st.integers(1, 3))):
        places = list(paths(value))
        if not places:
            break
        path = draw(st.sampled_from(places))
        if draw(st.integers(0, 4)) == 0:
            value = removed(value, path)
        else:
            new = draw(st.one_of(
                st.sampled_from([*WRONG.values(), *TEXTS.values()]), st.integers(-(2**70), 2**70),
                st.floats(), st.text(max_size=8), st.none(),
            ))  # fmt: skip
            value = replaced(value, path, new)
    try:
        return form.dumps(value)
    except (TypeError, ValueError, KeyError, AttributeError):
        return content  # the format has no such file


@st.composite
def _other_bytes(draw: Any, content: bytes) -> bytes:
    """Bytes with one change: overwritten, cut, doubled, moved, or a token put in."""
    begin, end = sorted(draw(st.integers(0, len(content))) for _ in range(2))
    kind = draw(st.integers(0, 5))
    part = content[begin:end][:4096]
    if kind == 0:
        return content[:begin] + draw(st.sampled_from(TOKENS)) + content[begin:]
    if kind == 1:
        return content[:begin] + draw(st.sampled_from(TOKENS)) + content[end:]
    if kind == 2:
        return content[:begin] + content[begin:][1 + draw(st.integers(0, 8)) :]
    if kind == 3:
        return content[:begin] + part + part + content[begin:]
    if kind == 4:
        new = draw(st.binary(min_size=1, max_size=8))
        return content[:begin] + new + content[begin + len(new) :]
    return content[:end]


class TooSlow(BaseException):
    """A file took longer than it may."""


def _alarm(*_: object) -> None:
    raise TooSlow


def fuzz(name: str, seconds: float, seed: int, folder: str) -> None:
    """Fuzz one parser for some seconds; the last line on standard output is what was found."""
    from benchmark.errors import BenchError

    set_hypothesis_home_dir(Path(folder, "hypothesis"))  # what it keeps belongs to no parser
    target = targets()[name]
    path = Path(folder, "case", target.name)
    path.parent.mkdir(parents=True)
    signal.signal(signal.SIGALRM, _alarm)
    counts = {"tried": 0, "told": 0}
    end, number = time.monotonic() + seconds, seed

    def tries(content: bytes) -> None:
        counts["tried"] += 1
        path.write_bytes(content)
        signal.alarm(SECONDS)
        try:
            target.parse(path)
        except BenchError:
            counts["told"] += 1
        finally:
            signal.alarm(0)

    while time.monotonic() < end:
        number += 1
        test = hypothesis.seed(number)(
            hypothesis.settings(
                max_examples=ROUND, deadline=None, database=None,
                suppress_health_check=list(hypothesis.HealthCheck), print_blob=False,
            )(hypothesis.given(changed(target))(tries))
        )  # fmt: skip
        with np.errstate(all="ignore"):
            test()  # what comes out of it ends this process with its traceback
    sys.stdout.write(json.dumps(counts) + "\n")
