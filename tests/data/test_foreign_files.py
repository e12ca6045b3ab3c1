"""Data sets of others: odd files end in one line, quickly, and nothing is written."""

import gzip
import io
import os
import struct
import tarfile
import time
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmark.data import cifar100, files, omniglot
from benchmark.data.cifar100 import Cifar100
from benchmark.data.folder import Folder
from benchmark.data.images import View, decode_view
from benchmark.data.omniglot import Omniglot
from benchmark.data.recordio import Records, joined, read_faces
from benchmark.errors import BenchError

VIEW = View(16, 16)


@contextmanager
def refused(words=None):
    """One printable line within seconds."""
    begin = time.process_time()
    with pytest.raises(BenchError, match=words) as caught:
        yield
    line = str(caught.value)
    assert "\n" not in line and line.isprintable() and len(line) < 1000
    assert time.process_time() - begin < 10


def odd_places(folder):
    """Paths that are no regular files."""
    os.mkfifo(folder / "pipe")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "loop").symlink_to("loop")
    (folder / "gone").symlink_to("nothing")
    (folder / "folder").mkdir()
    return [folder / name for name in ("pipe", "endless", "loop", "gone", "folder")]


# --- images


def picture(form="PNG", mode="RGB", size=(20, 20), **options):
    out = io.BytesIO()
    Image.new(mode, size, 1).save(out, form, **options)
    return out.getvalue()


def png(width, height):
    """A small file that says it is a large picture."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    raw = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")):
        checksum = zlib.crc32(kind + content)
        raw += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    return raw


def test_pictures_that_are_no_files(tmp_path):
    for path in odd_places(tmp_path):
        with refused("expected a regular file|cannot be read"):
            decode_view(path, VIEW, "x")


@pytest.mark.parametrize("size", [(8193, 8192), (2**31 - 1, 2**31 - 1), (2**30, 1)])
def test_pictures_beyond_the_limit(size):
    with refused("x: (expected at most 67108864 pixels|image cannot be decoded)"):
        decode_view(png(*size), VIEW, "x")


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_damaged_pictures(form):
    """Whatever bytes are cut or changed, it is a picture or a line."""
    raw, rng = picture(form), np.random.default_rng(0)
    assert decode_view(raw, VIEW, "x").shape == (3, 16, 16)
    for cut in range(0, len(raw), max(1, len(raw) // 40)):
        with refused_or_not():
            decode_view(raw[:cut], VIEW, "x")
    for _ in range(200):
        changed = bytearray(raw)
        for place in rng.integers(0, len(raw), 3):
            changed[place] = rng.integers(0, 256)
        with refused_or_not():
            decode_view(bytes(changed), VIEW, "x")


@contextmanager
def refused_or_not():
    try:
        yield
    except BenchError as error:
        assert "\n" not in str(error)


def test_landmarks_that_are_no_face():
    for points in ([1.0] * 10, [np.nan] * 10, [np.inf] * 10):
        view = View(16, 16, fit="align")
        with np.errstate(all="ignore"), refused_or_not():
            decode_view(picture(), view, "x", np.array(points, np.float32))


# --- lists


@pytest.mark.parametrize(
    "raw",
    [b"\0", b"\xff\xfe", b"1 2\n3", b"1 2 3", b"9" * 5000 + b" 1", b"99999999999999999999 1",
     b"nan 1", b"1e5 1", b"\x1b[2J", b"1 2\n" + b" " * 10_000 + b"x", b""],
)  # fmt: skip
def test_tables_of_integers(tmp_path, raw, recwarn):
    (tmp_path / "x").write_bytes(raw)
    with refused("expected a pair in each line"):
        files.read_integers(tmp_path / "x", 2, "a pair")


def test_lists_that_are_no_files(tmp_path, monkeypatch):
    pattern = files.re.compile(r"(\d+)")
    for path in odd_places(tmp_path):
        with refused():
            files.read_integers(path, 2, "a pair")
        with refused():
            list(files.matches(path, pattern, "a number"))
    (tmp_path / "x").write_text("1\n" * 200)
    monkeypatch.setattr(files, "_MOST_TABLE", 100)
    with refused("expected at most 100 bytes"):
        list(files.matches(tmp_path / "x", pattern, "a number"))


def test_a_long_line(tmp_path):
    (tmp_path / "x").write_text("1" * 20_000)
    with refused(r"x:1: expected a number, got '1{80}'"):
        list(files.matches(tmp_path / "x", files.re.compile(r"(\d+)"), "a number"))


# --- archives


def cifar(root, members):
    with tarfile.open(root / cifar100.ARCHIVE, "w:gz") as archive:
        for name, content, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.size, member.linkname = kind, len(content), "/etc/passwd"
            archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize(
    "members",
    [
        [("/etc/train.bin", b"x", tarfile.REGTYPE)],
        [("../../train.bin", b"x", tarfile.REGTYPE)],
        [("train.bin", b"", tarfile.SYMTYPE)],
        [("train.bin", b"", tarfile.LNKTYPE)],
        [("train.bin", b"", tarfile.FIFOTYPE)],
        [("train.bin", b"", tarfile.CHRTYPE)],
        [(f"{i}", b"", tarfile.REGTYPE) for i in range(1100)],
    ],
)
def test_members_of_an_archive(tmp_path, members):
    root = tmp_path / "data"
    root.mkdir()
    cifar(root, members)
    with refused():
        Cifar100().load(root)
    assert [path.name for path in tmp_path.rglob("*")] == ["data", cifar100.ARCHIVE]


def test_an_archive_that_unpacks_to_more_than_it_should(tmp_path, monkeypatch):
    """A member of 1 GiB that nobody asked for, and a header of as much, both of zeros."""
    monkeypatch.setattr(cifar100, "_MOST_BYTES", 2**24)
    for kind in (tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
        member = tarfile.TarInfo("large")
        member.type, member.size = kind, 2**30
        with gzip.open(tmp_path / cifar100.ARCHIVE, "wb", compresslevel=1) as out:
            out.write(member.tobuf())
            for _ in range(64):
                out.write(bytes(2**20))
        with refused("expected at most 16777216 unpacked bytes|cannot be read"):
            Cifar100().load(tmp_path)


@pytest.mark.parametrize(
    "raw", [b"", b"\x1f\x8b", b"x" * 2000, gzip.compress(b"x" * 2000, mtime=0)]
)
def test_archives_that_are_none(tmp_path, raw):
    (tmp_path / cifar100.ARCHIVE).write_bytes(raw)
    with refused():
        Cifar100().load(tmp_path)


def zipped(root, members):
    with zipfile.ZipFile(root / "images_background.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../x", "images_background/../../x", "A/character01/../0001_01.png",
     "../character01/0001_01.png", "a\x1b/x/0001_01.png"],
)  # fmt: skip
def test_names_in_a_zip(tmp_path, name):
    root = tmp_path / "data"
    root.mkdir()
    zipped(root, [(name, picture("PNG", "L"))])
    with refused("unexpected name"):
        Omniglot().load(root)
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "images_background.zip"]


def test_a_zip_of_too_much(tmp_path, monkeypatch):
    name = "images_background/A/character01/0001_{:02d}.png"
    zipped(tmp_path, [(name.format(1), bytes(2**21))])
    with refused("expected at most 1048576 bytes, got 2097152"):
        Omniglot().load(tmp_path)
    zipped(tmp_path, [(name.format(i), b"") for i in range(20)])
    monkeypatch.setattr(omniglot, "_MOST_MEMBERS", 10)
    with refused("expected at most 10 members"):
        Omniglot().load(tmp_path)


@pytest.mark.parametrize("raw", [b"", b"PK\x05\x06" + bytes(18), b"PK\x03\x04" + b"\xff" * 100])
def test_zips_that_are_none(tmp_path, raw):
    (tmp_path / "images_background.zip").write_bytes(raw)
    with refused():
        Omniglot().load(tmp_path)


# --- records of faces

MAGIC = struct.pack("<I", 0xCED7230A)


def faces(folder, records, index=None):
    raw, offsets = b"", []
    for record in records:
        offsets.append(len(raw))
        content = record + bytes(-len(record) % 4)
        raw += MAGIC + struct.pack("<I", len(content)) + content
    (folder / "x.rec").write_bytes(raw)
    lines = index or "".join(f"{i}\t{offset}\n" for i, offset in enumerate(offsets))
    (folder / "x.idx").write_text(lines)
    return folder / "x.rec", folder / "x.idx"


def header(*labels):
    return struct.pack("<IfQQ", len(labels), 0.0, 0, 0) + struct.pack(f"<{len(labels)}f", *labels)


@pytest.mark.parametrize(
    "labels", [(np.nan, 3), (np.inf, np.inf), (1e18, 1e18), (2, 1e30), (-1, 3), (0, 0), (3e8, 3e8)]
)
def test_tables_of_people(tmp_path, labels):
    with refused():
        read_faces(*faces(tmp_path, [header(*labels), header(1)]))


@pytest.mark.parametrize("index", ["0 -5\n", "0 9e9\n", "0\n", "\n"])
def test_odd_indices(tmp_path, index, recwarn):
    with refused():
        read_faces(*faces(tmp_path, [header(5, 9), header(1)], index))


def test_a_record_of_endless_parts(tmp_path):
    parts = MAGIC + struct.pack("<I", 1 << 29)
    parts += (MAGIC + struct.pack("<I", 2 << 29)) * 50_000
    (tmp_path / "x.rec").write_bytes(parts)
    (tmp_path / "x.idx").write_text("0 0\n")
    with refused("few parts"):
        read_faces(tmp_path / "x.rec", tmp_path / "x.idx")


def by_cutting(raw):
    """The same as ``joined``, one cut at a time."""
    at = raw.find(MAGIC)
    while at >= 0:
        if at % 4 == 0:
            raw = raw[: at + 4] + raw[at + 8 :]
        at = raw.find(MAGIC, at + 4 if at % 4 == 0 else at + 1)
    return raw


def test_parts_are_joined_in_one_go():
    rng = np.random.default_rng(0)
    for _ in range(300):
        pieces = [MAGIC, b"a", b"bc", b"abcd", MAGIC[:2], MAGIC + b"size"]
        raw = b"".join(pieces[i] for i in rng.integers(0, len(pieces), rng.integers(0, 12)))
        assert joined(raw) == by_cutting(raw)
    begin = time.process_time()
    joined((MAGIC + bytes(4)) * 500_000)  # one cut at a time takes minutes
    assert time.process_time() - begin < 10


def test_records_without_their_file(tmp_path):
    with refused("cannot be read"):
        Records(tmp_path / "x.rec", np.array([[0, 5]])).read(0)


# --- folders


def photographs(root: bytes | str, names):
    for number, name in enumerate(names):
        folder = os.fsencode(root) + b"/" + name
        os.mkdir(folder)  # noqa: PTH102 - a Path of bytes there is none
        for i in range(2):
            with Path(os.fsdecode(folder), f"{i}.png").open("wb") as file:
                shade = 20 * number + i
                Image.new("RGB", (16, 16), (shade, shade, shade)).save(file, "PNG")


GOOD = [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("name", [b"caf\xe9", b"x\x1b[2J", b"a\nb", b"\xe2\x80\xae", b"\x7f"])
def test_folders_whose_names_cannot_be_shown(tmp_path, name):
    photographs(tmp_path, [*GOOD, name])
    with pytest.raises(BenchError, match="expected a name of") as caught:
        Folder().load(tmp_path)
    assert str(caught.value).replace("\n", "").isprintable()


def test_folders_of_other_scripts_are_read(tmp_path):
    photographs(tmp_path, [*GOOD, "é 中".encode()])
    assert "é 中" in Folder().load(tmp_path).class_names


def test_pictures_in_folders_that_are_no_files(tmp_path):
    photographs(tmp_path, GOOD)
    for name in ("pipe.png", "endless.png"):
        path = tmp_path / "a" / name
        os.mkfifo(path) if name == "pipe.png" else path.symlink_to("/dev/zero")
    Folder().source(tmp_path)  # passed over, not waited for
    with refused("expected a regular file"):
        files.content_hash(tmp_path, [tmp_path / "a" / "pipe.png"])
