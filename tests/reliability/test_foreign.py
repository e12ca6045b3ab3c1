"""Files of others, given to their readers: an odd one is one line, quickly, and nothing is written.

A row of the table is what a file holds, who reads it, and the words of the line. Whole verbs are
given many more by ``test_hostile.py``, in processes of their own.
"""

import gzip
import json
import os
import re
import struct
import tarfile
import time
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from safetensors.torch import save
from support.hostile.archives import member, sound_record, tarred, zipped
from support.hostile.images import KINDS, encoded, picture, png

from benchmark.data import cifar100, files, omniglot
from benchmark.data.base import read_options
from benchmark.data.images import View, decode_view
from benchmark.data.recordio import Records, joined, read_faces
from benchmark.errors import BenchError
from benchmark.models.heads import Head
from benchmark.models.module import Portable, load_module

SECONDS = 10
VIEW = View(16, 16)
NUMBER = re.compile(r"(\d+)")
READERS = {
    "picture": ("x.png", lambda path: decode_view(path, VIEW, "x")),
    "pairs": ("x.txt", lambda path: files.read_integers(path, 2, "a pair")),
    "numbers": ("x.txt", lambda path: list(files.matches(path, NUMBER, "a number"))),
    "cifar100": (cifar100.ARCHIVE, lambda path: read_options("cifar100").load(path.parent)),
    "omniglot": ("images_background.zip", lambda path: read_options("omniglot").load(path.parent)),
    "faces": ("x.rec", lambda path: read_faces(path, path.with_suffix(".idx"))),
    "module": ("m.safetensors", load_module),
}
"""Kind -> the name of its file, and what reads it."""


@contextmanager
def one_line(words=None):
    """One printable line within seconds."""
    begin = time.process_time()
    with pytest.raises(BenchError, match=words) as caught:
        yield
    line = str(caught.value)
    assert "\n" not in line and line.isprintable() and len(line) < 1000
    assert time.process_time() - begin < SECONDS


# --- what files hold

MAGIC = struct.pack("<I", 0xCED7230A)
SPLIT = MAGIC + struct.pack("<I", 1 << 29) + (MAGIC + struct.pack("<I", 2 << 29)) * 50_000
CHARACTER = "images_background/A/character01/0001_{:02d}.png"
HEAD = {"kind": "softmax", "dim": 4, "classes": [0, 1, 2]}
WEIGHTS = Head(**HEAD).state_dict()


def faces(*labels, index=None):
    """Two records, of which the first says where people begin and end."""
    first = sound_record(*labels)
    known = f"0\t0\n1\t{len(first)}\n" if index is None else index
    return {"x.rec": first + sound_record(1.0, 2.0), "x.idx": known.encode()}


def module(cls, arguments=None, tensors=None):
    """A stored module of a class; or with a text in the place of its description."""
    text = json.dumps({"class": cls, "arguments": arguments}) if arguments is not None else cls
    return save(WEIGHTS if tensors is None else tensors, {"module": text})


def head(**arguments):
    return module("benchmark.models.heads:Head", {**HEAD, **arguments})


def framed(length, header=b"{}"):
    return struct.pack("<Q", length) + header


class Odd(Portable):
    """Raises what it is told to."""

    def __init__(self, kind):
        super().__init__()
        raise {e.__name__: e for e in RAISED}[kind]("x\nof many lines")


RAISED = (
    SystemExit, TypeError, AttributeError, KeyError, RecursionError, MemoryError, RuntimeError,
    ZeroDivisionError, AssertionError, StopIteration, BenchError,
)  # fmt: skip
NO_CLASSES = (
    "os:system", "benchmark.models.module:Portable", "benchmark.models.module:json",
    "benchmark.models.heads:Head.__class__", "antigravity:Portable", "methods.fct:FCT",
    "methods.fct:Nope", "methods:x", "torch.nn:Linear", "this:s", "benchmark.cli.app:main", "..:x",
    "no_such_module:X", "a" * 100_000,
)  # fmt: skip
NO_DESCRIPTIONS = (
    "[" * 100_000, '{"a":' * 100_000, "1" * 10_000, "1e999999", "NaN", '"x"', "null", "[1]", "",
    "{", '{"class": 1, "arguments": {}}', '{"class": "x:y", "arguments": []}', '{"class": "x:y"}',
    '{"class": "x:y", "arguments": {}, "more": 1}', '{"class": "\\ud800:y", "arguments": {}}',
)  # fmt: skip
NONE = "not a stored module"
MEMBERS = (
    ("/etc/train.bin", tarfile.REGTYPE), ("../../train.bin", tarfile.REGTYPE),
    *(("train.bin", kind) for kind in (
        tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)),
)  # fmt: skip
PAIRS = (
    b"\0", b"\xff\xfe", b"1 2\n3", b"1 2 3", b"9" * 5000 + b" 1", b"99999999999999999999 1",
    b"nan 1", b"1e5 1", b"\x1b[2J", b"1 2\n" + b" " * 10_000 + b"x", b"",
)  # fmt: skip
ROWS = [
    *(("picture", png(*size), "x: (expected at most 67108864 pixels|image cannot be decoded)")
      for size in ((8193, 8192), (2**31 - 1, 2**31 - 1), (2**30, 1))),
    *(("pairs", raw, "expected a pair in each line") for raw in PAIRS),
    ("numbers", b"1" * 20_000, r"x.txt:1: expected a number, got '1{80}'"),
    *(("cifar100", tarred({}, (member(*each, "/etc/passwd"),)), None) for each in MEMBERS),
    ("cifar100", tarred({}, tuple(member(f"{i}", tarfile.REGTYPE) for i in range(1100))), None),
    *(("cifar100", raw, None)
      for raw in (b"", b"\x1f\x8b", b"x" * 2000, gzip.compress(b"x" * 2000, mtime=0))),
    *(("omniglot", raw, None)
      for raw in (b"", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" + b"\xff" * 100)),
    *(("faces", faces(*labels), None) for labels in (
        (np.nan, 3), (np.inf, np.inf), (1e18, 1e18), (2, 1e30), (-1, 3), (0, 0), (3e8, 3e8))),
    *(("faces", faces(5, 9, index=index), None) for index in ("0 -5\n", "0 9e9\n", "0\n", "\n")),
    ("faces", {"x.rec": SPLIT, "x.idx": b"0 0\n"}, "few parts"),
    *(("module", module(name, {}), "unknown Portable class") for name in NO_CLASSES),
    ("module", module("benchmark.models.heads:Haed", HEAD),
     "did you mean 'benchmark.models.heads:Head'"),
    ("module", module("", {}), NONE),
    *(("module", module(f"{__name__}:Odd", {"kind": each.__name__}, {}),
       f"{NONE}: .*of many lines") for each in RAISED),
    *(("module", module(text), NONE) for text in NO_DESCRIPTIONS),
    ("module", save(WEIGHTS), NONE), ("module", head(no=1), NONE), ("module", head(dim=5), "size"),
    ("module", module("benchmark.models.heads:Head", HEAD, {"weight": torch.zeros(3, 4)}), NONE),
    ("module", module("benchmark.models.heads:Head", HEAD, WEIGHTS | {"weight": torch.zeros(3, 5)}),
     r"tensor 'weight': expected size \(3, 4\), got \(3, 5\)"),
    ("module", module("benchmark.models.heads:Head", HEAD,
                      {n: w for n, w in WEIGHTS.items() if n != "bias"} | {"more": torch.zeros(1)}),
     r"tensor 'bias': expected size \(3,\), got none"),
    *(("module", raw, NONE) for raw in (
        b"", b"\0" * 8, framed(2**62), framed(2**26), framed(2), framed(2, b"[]"), b"\xff" * 100,
        framed(100_000, b"[" * 100_000), *(head()[:cut] for cut in (5, 100, -4)))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "content", "words"), ROWS, ids=[f"{kind}-{i}" for i, (kind, *_) in enumerate(ROWS)]
)
def test_an_odd_file_is_one_line(tmp_path, recwarn, kind, content, words):
    name, read = READERS[kind]
    root = tmp_path / "data"
    root.mkdir()
    parts = content if isinstance(content, dict) else {name: content}
    for part, raw in parts.items():
        (root / part).write_bytes(raw)
    with one_line(words):
        read(root / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["data", *parts])


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("odd", ["pipe", "endless", "loop", "gone", "folder"])
def test_what_is_no_file_is_refused(tmp_path, kind, odd):
    name, read = READERS[kind]
    path = tmp_path / name
    if odd == "pipe":
        os.mkfifo(path)
    elif odd == "folder":
        path.mkdir()
    else:
        path.symlink_to({"endless": "/dev/zero", "loop": name, "gone": "nothing"}[odd])
    if kind == "faces":
        path.with_suffix(".idx").write_text("0\t0\n")
    with one_line():
        read(path)


def test_a_module_beyond_the_limit(tmp_path):
    with (tmp_path / "m").open("wb") as file:
        file.truncate(2**40)  # takes no room
    with one_line("expected at most"):
        load_module(tmp_path / "m")


def test_what_is_larger_than_it_may_be(tmp_path, monkeypatch):
    """A list, members of a zip, and what a tar unpacks to: a member, a header, all of zeros."""
    (tmp_path / "x").write_text("1\n" * 200)
    monkeypatch.setattr(files, "_MOST_TABLE", 100)
    with one_line("expected at most 100 bytes"):
        list(files.matches(tmp_path / "x", NUMBER, "a number"))
    name, read = READERS["omniglot"]
    (tmp_path / name).write_bytes(zipped({CHARACTER.format(i): b"" for i in range(20)}))
    monkeypatch.setattr(omniglot, "_MOST_MEMBERS", 10)
    with one_line("expected at most 10 members"):
        read(tmp_path / name)
    monkeypatch.setattr(cifar100, "_MOST_BYTES", 2**24)
    name, read = READERS["cifar100"]
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        large = member("large", kind)
        large.size = 2**30
        content = large.tobuf() + bytes(2**26)
        (tmp_path / name).write_bytes(gzip.compress(content, compresslevel=1))
        with one_line("expected at most 16777216 unpacked bytes|cannot be read"):
            read(tmp_path / name)


@contextmanager
def one_line_or_none():
    try:
        yield
    except BenchError as error:
        assert "\n" not in str(error)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("form", KINDS)
def test_damaged_pictures(form):
    """Whatever bytes are cut or changed, it is a picture or a line."""
    raw, rng = encoded(picture(0, (20, 20)), form), np.random.default_rng(0)
    assert decode_view(raw, VIEW, "x").shape == (3, 16, 16)
    for cut in range(0, len(raw), max(1, len(raw) // 40)):
        with one_line_or_none():
            decode_view(raw[:cut], VIEW, "x")
    for _ in range(200):
        changed = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            changed[place] = rng.integers(0, 256)
        with one_line_or_none():
            decode_view(bytes(changed), VIEW, "x")


def test_landmarks_that_are_no_face():
    for points in ([1.0] * 10, [np.nan] * 10, [np.inf] * 10):
        view = View(16, 16, fit="align")
        with np.errstate(all="ignore"), one_line_or_none():
            decode_view(encoded(picture(1)), view, "x", np.array(points, np.float32))


def by_cutting(raw):
    """The same as ``joined``, one cut at a time."""
    at = raw.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            raw = raw[: at + 4] + raw[at + 8 :]
        at = raw.find(MAGIC, at + 4 if at % 4 == 0 else at + 1)
    return raw


def test_parts_of_a_record_are_joined_in_one_go():
    rng = np.random.default_rng(0)
    for _ in range(300):
        pieces = [MAGIC, b"a", b"bc", b"abcd", MAGIC[:2], MAGIC + b"size"]
        raw = b"".join(pieces[i] for i in rng.integers(0, len(pieces), rng.integers(0, 12)))
        assert joined(raw) == by_cutting(raw)
    begin = time.process_time()
    joined((MAGIC + bytes(4)) * 500_000)  # one cut at a time takes minutes
    assert time.process_time() - begin < SECONDS


def test_records_without_their_file(tmp_path):
    with one_line("cannot be read"):
        Records(tmp_path / "x.rec", np.array([[0, 5]])).read(0)
