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

from support.hostile import archives, arrays, configs, images, modules, records, values

SECONDS = 10
"""That one file may take."""
ROUND = 100  # examples between two looks at the clock

TOKENS = (
    b"", b"\0", b"\xff", b"\n", b" ", b"-1", b"0", b"1e999", b"NaN", b"null", b"[]", b"{}", b'"',
    b"'", b"[", b"]", b"{", b"}", b",", b":", b"&a ", b"*a", b"<<: ", b"!!int ", b"!!binary ",
    b"- ", b"? ", b"%", b"\\u0000", b"\\ud800", b"9" * 400, b"\x1b[2J", b"\xe2\x80\xae",
    b"\xff\xff\xff\x7f", b"\xff" * 8, b"\0" * 8, b"2024-13-45", b"__proto__", b"a" * 300,
    b"[" * 2000, b"{\"a\":" * 2000,
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A parser of files, and files that it takes."""

    name: str  # of the file
    seeds: Sequence[bytes]
    parse: Callable[[Path], object]
    structured: bool = False  # JSON, whose values are changed too


def targets() -> Mapping[str, Target]:
    """Every parser of foreign files; ``--set`` and ``published`` among them."""
    from benchmark.config.loading import load_protocol, load_track
    from benchmark.config.reading import parse_settings, read_yaml
    from benchmark.contract.conversion import Conversion
    from benchmark.data.base import read_options
    from benchmark.data.images import View, decode_view
    from benchmark.harness.store import Store
    from benchmark.models.module import load_module
    from benchmark.records.details import read_details
    from benchmark.records.files import read_record
    from benchmark.records.published import read_published
    from benchmark.upgrade.formats import open_vectors
    from support.hostile import stores

    view = View(16, 16)
    sound = modules.packed({"module": json.dumps(dict(modules.SOUND))}, modules.WEIGHTS)
    meta = next(s for s in modules.conversions() if s.name == "method-is-dots").files[modules.META]
    yaml_seeds = [
        (configs.ROOT / "protocols" / name).read_bytes()
        for name in ("open-class.yaml", "backfill.yaml", "tracks/toy.yaml", "tracks/glyphs.yaml")
    ]
    published = next(configs.published()).files
    table = next(name for name in published if str(name).endswith(".csv"))

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

    def one(name: str, parse: Callable[[Path], object], *seeds: Any, **more: Any) -> Target:
        return Target(name, seeds, parse, **more)

    pictures = [
        images.encoded(images.picture(1), kind)
        for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")
    ]  # fmt: skip
    npy = [arrays.npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }\n", bytes(32))]
    return {
        "record": one("seed-0.json", read_record, records.sealed(records.base()), structured=True),
        "details": one("seed-0.details.xz", read_details, records.file_of()),
        "yaml": one("evil.yaml", read_yaml, *yaml_seeds),
        "protocol": one("evil.yaml", lambda p: load_protocol(str(p)),
                        *[b"id: evil\n" + s.partition(b"\n")[2] for s in yaml_seeds[:2]]),
        "track": one("evil.yaml", lambda p: load_track(str(p)),
                     *[s.replace(b"id: toy", b"id: evil") for s in yaml_seeds[2:3]]),
        "settings": one("words", text_settings, b"old.dim=8", b"far=[0.1, 0.2]", b"a={b: [1]}"),
        "module": one(modules.MODULE, load_module, sound),
        "conversion": one(modules.META, conversion, meta, structured=True),
        "vectors": one(arrays.VECTORS, formats, *npy),
        **{ending[1:]: one(f"evil{ending}", formats, *seeds) for ending, seeds in _vectors()},
        "image": one("1.png", lambda p: decode_view(p, view, "x"), *pictures),
        "published": one(str(table), numbers, published[table]),
        "omniglot": one("images_background.zip", dataset("omniglot"),
                        archives.zipped({"A1/character01/0011_01.png": pictures[0]})),
        "cifar100": one("cifar-100-binary.tar.gz", dataset("cifar100"), archives.sound_tar()),
        "faces": one("train.rec", _faces, archives.sound_record()),
        "stage": one("stages/embed-0123456789abcdef01234567/stage.json", stage,
                     stores.sealed(stores.meta()), structured=True),
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
        content = draw(_other_values(json.loads(content)))
    for _ in range(draw(st.integers(0, 6))):
        content = draw(_other_bytes(content))
    return content


@st.composite
def _other_values(draw: Any, value: Any) -> bytes:
    """JSON with a few of its values replaced or removed, and the seal that fits again."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(values.paths(value))
        if not places:
            break
        path = draw(st.sampled_from(places))
        if draw(st.integers(0, 4)) == 0:
            value = values.removed(value, path)
        else:
            new = draw(st.one_of(
                st.sampled_from([*values.WRONG.values(), *values.TEXTS.values()]),
                st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=8), st.none(),
            ))  # fmt: skip
            value = values.replaced(value, path, new)
    return records.sealed(value) if "schema" in value else json.dumps(value).encode()


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
