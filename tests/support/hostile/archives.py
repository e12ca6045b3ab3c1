"""Hostile archives and tables of datasets: what their readers open below a data root."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from support.hostile import Content, Files, Link, Sample, Sparse, in_place
from support.hostile.engine import TEXTS, Form, other_bytes, other_values
from support.hostile.images import encoded, picture, png

ZIP = "omniglot/images_background.zip"
TAR = "cifar100/cifar-100-binary.tar.gz"
_TIME = (2020, 1, 1, 0, 0, 0)


def archives() -> Iterator[Sample]:
    """Samples of every reader; the first folder of a path is the dataset."""
    yield from _of(ZIP, _zips(), {})
    yield from _of(TAR, _tars(), {})
    files = {f"cifar100/cifar-100-binary/{name}": raw for name, raw in _cifar().items()}
    for path in list(files)[:3:2]:
        yield from _of(path, other_bytes(files[path], most=6), files)
    python = {"cifar100/cifar-100-python/train": b"\x80\x04."}
    yield Sample("archive", "cifar100-the-pickled-version", python)
    faces = {"ms1mv3_ijbc/train.rec": sound_record(), "ms1mv3_ijbc/train.idx": b"0\t0\n1\t40\n"}
    rec, idx = faces
    yield from _of(rec, (*other_bytes(faces[rec], most=20), *_records()), faces)
    large = ("20-mib", b"0\t0\n" * 5 * 2**20), ("twice", b"0\t0\n0\t0\n")
    yield from _of(idx, (*other_values(faces[idx], words("\t"), 30), *large), faces)
    yield from _lists()


def _of(path: str, contents: Any, others: Mapping[str, bytes]) -> Iterator[Sample]:
    """Samples with each of the contents, or something else, in the place of a file."""
    prefix = path.replace("/", "-")
    for name, raw in contents:
        yield Sample("archive", f"{prefix}-{name}", {**others, path: raw})
    for sample in in_place("archive", path, others):
        yield Sample("archive", f"{prefix}-{sample.name}", sample.files)


def words(separator: str, many: int = Form.many) -> Form:
    """The format of lists of a few words a line."""
    return Form(
        lambda raw: [line.split(separator) for line in raw.decode().splitlines()],
        lambda rows: "".join(f"{separator.join(map(str, row))}\n" for row in rows).encode(
            "utf-8", "surrogatepass"
        ),
        many=many,
    )


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), raw, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _renamed(archived: Callable[[dict[str, bytes]], bytes], entries: Mapping[str, bytes]) -> Any:
    """Archives with a member more, of each hostile name."""
    first = next(iter(entries.values()))
    for name, text in list(TEXTS.items())[::2]:
        if text and len(text) < 60_000 and "\ud800" not in text:
            yield f"member-{name}", archived({**entries, f"{text}/character01/0001_01.png": first})
    for name in ("../../outside/planted.png", "/tmp/planted.png", "a/../../b.png"):
        yield f"member-{name.replace('/', '|')}", archived({**entries, name: first})


def _zips() -> Iterator[tuple[str, bytes]]:
    entries = {
        f"images_background/A{a}/character{c:02d}/{10 * a + c:04d}_{w:02d}.png": encoded(
            picture(100 * a + 10 * c + w, mode="L")
        )
        for a in (1, 2) for c in (1, 2, 3) for w in range(1, 9)
    }  # fmt: skip
    sound, place = zipped(entries), "A1/character01/0001_09.png"
    yield "sound", sound
    yield from _renamed(zipped, entries)
    # One member alone: most of the bytes are those of headers.
    yield from other_bytes(zipped({next(iter(entries)): b"x"}), most=30)
    yield "member-of-900-mib", zipped({**entries, place: bytes(900 * 2**20)})
    yield "20000-members", zipped({f"A1/character01/0001_{i:02d}.png": b"" for i in range(20_000)})
    yield "huge-drawing", zipped({**entries, place: png(30_000, 30_000)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("images_background/A1/character01/0011_09.png", _TIME)
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    yield "member-is-a-link", out.getvalue()
    yield "overlapping", _overlapping(2000)


def _overlapping(n: int) -> bytes:
    """Many members that share one body of zeros, as Fifield's bomb has it."""
    body = zipped({"A1/character01/0001_01.png": bytes(2**20)})
    start, end = body.find(b"PK\x01\x02"), body.rfind(b"PK\x05\x06")
    many = b"".join(
        body[start:end].replace(b"0001_01.png", b"%04d_%02d.png" % (i % 9999, i % 99))
        for i in range(n)
    )
    counts = struct.pack("<HHII", n, n, len(many), start)
    return body[:start] + many + body[end : end + 8] + counts + body[end + 20 :]


def _cifar() -> dict[str, bytes]:
    rows = b"".join(bytes([i % 2, i % 12]) + bytes([i]) * 3072 for i in range(24))
    return {
        "train.bin": rows, "test.bin": rows,
        "fine_label_names.txt": b"\n".join(b"fine%d" % i for i in range(12)),
        "coarse_label_names.txt": b"animals\nthings\n",
    }  # fmt: skip


def tarred(files: Mapping[str, bytes], more: tuple[tarfile.TarInfo, ...] = ()) -> bytes:
    """A gzipped tar archive; ``more`` members have no content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info in more:
            tar.addfile(info)
        for name, raw in files.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
    return gzip.compress(out.getvalue(), mtime=0)


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    """Header of a tar archive for a member without content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.devmajor, info.devminor = kind, link, 1, 5
    return info


def _checked(raw: bytes) -> bytes:
    """A gzipped tar archive whose first header has the checksum that fits."""
    made = bytearray(raw)
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made[:512])
    return gzip.compress(bytes(made), mtime=0)


def _tars() -> Iterator[tuple[str, bytes]]:
    files = _cifar()
    sound = tarred(files)
    yield "sound", sound
    plain = gzip.decompress(sound)
    for name, head in other_bytes(plain[:512], most=24):
        yield f"head-{name}", _checked(head[:512].ljust(512, b"\0") + plain[512:])
    yield from other_bytes(sound, most=8)
    rest = {name: raw for name, raw in files.items() if name != "train.bin"}
    for kind, link in (
        (tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "/etc/passwd"), (tarfile.CHRTYPE, ""),
        (tarfile.SYMTYPE, "train.bin"), (tarfile.FIFOTYPE, ""), (tarfile.DIRTYPE, ""), (b"Z", ""),
    ):  # fmt: skip
        info = member("cifar-100-binary/train.bin", kind, link)
        yield f"train-is-{kind!r}-{link.replace('/', '|')}", tarred(rest, (info,))
    for label in ("../../outside/train.bin", "/tmp/train.bin"):
        info = member(label, tarfile.REGTYPE)
        yield f"member-{label.replace('/', '|')}", tarred(files, (info,))
    for name, text in list(TEXTS.items())[1::2]:
        raw = text.encode("utf-8", "surrogatepass")
        names = files["fine_label_names.txt"].replace(b"fine3", raw)
        yield f"label-{name}", tarred(files | {"fine_label_names.txt": names})
    for name, changed in {
        "label-beyond": {"train.bin": b"\xff" * 3074}, "no-labels": {"fine_label_names.txt": b""},
        "half-a-record": {"train.bin": files["train.bin"][:-5]},
        "bomb-500-mib": {"train.bin": bytes(500 * 2**20)},
        "bomb-of-labels": {"fine_label_names.txt": b"a\n" * (50 * 2**20)},
    }.items():  # fmt: skip
        yield name, tarred(files | changed)
    yield "gzip-of-zeros", gzip.compress(bytes(300 * 2**20), mtime=0)
    many = tuple(member(f"x{i}", tarfile.REGTYPE) for i in range(20_000))
    yield "20000-members", tarred(files, many)
    for i, body in enumerate((b"\xff" * 600, b"99999 path=x\n", b"22 size=99999999999999\n",
                              b"28 GNU.sparse.realsize=9e99\n")):  # fmt: skip
        info = member("x", tarfile.XHDTYPE)
        info.size = len(body)
        head = info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)
        yield f"pax-{i}", gzip.compress(head * 3 + plain, mtime=0)


def sound_tar() -> bytes:
    """An archive of small photographs as it should be."""
    return tarred(_cifar())


_MAGIC = struct.pack("<I", 0xCED7230A)


def sound_record(*labels: float) -> bytes:
    """The first record of packed faces, which says where people begin and end."""
    labels = labels or (2.0, 3.0)
    body = struct.pack(f"<IfQQ{len(labels)}f", len(labels), 0.0, 0, 0, *labels)
    return _MAGIC + struct.pack("<I", len(body)) + body


def _records() -> Iterator[tuple[str, bytes]]:
    for labels in ((2.0, 3e38), (1e15, 2e15), (float("nan"), 3.0), (-1.0, 3.0), (0.0, 0.0)):
        yield f"people-{labels}", sound_record(*labels)
    yield "parts-without-end", (_MAGIC + struct.pack("<I", 2 << 29)) * 9


def _lists() -> Iterator[Sample]:
    """Lists of images that lie beside them, and folders of images."""
    jpeg = encoded(picture(1, (32, 32)), "JPEG")
    images: dict[Any, Content] = {
        f"places365/{part}/{i}.jpg": jpeg
        for part in ("data_256_standard/a", "val_256") for i in range(4)
    }  # fmt: skip
    lists = {
        f"places365/{name}.txt": b"".join(line % (i, i) for i in range(4))
        for name, line in (("categories_places365", b"/a/place%d %d\n"), ("places365_val",
        b"%d.jpg %d\n"), ("places365_train_standard", b"/a/%d.jpg %d\n"))
    }  # fmt: skip
    for path in list(lists)[::2]:
        for name, raw in (
            *other_values(lists[path], words(" ", many=1000), 16),
            ("60-mib", lists[path] + b"\n" * (60 * 2**20)),
            ("parent", lists[path] + b"../../outside/keep.jpg 0\n"),
        ):  # fmt: skip
            yield Sample("archive", f"{path[10:14]}-{name}", {**images, **lists, path: raw})
    for i, file in enumerate((b"\x1b[2J", b"0002_c1s1_" + b"9" * 200 + b"_03", b"\xff",
                              "٠٠٠٢_c1s1_000451_03".encode())):  # fmt: skip
        files: Files = {b"market1501/bounding_box_train/" + file + b".jpg": jpeg}
        yield Sample("archive", f"market1501-{i}", files)
    people: dict[Any, Content] = {
        f"vggface2/{part}/n00000{p}/000{k}_01.jpg": jpeg
        for part, p in (("train", 1), ("train", 2), ("test", 3), ("test", 4)) for k in range(4)
    }  # fmt: skip
    boxes = b'NAME_ID,X,Y,W,H\n"n000001/0000_01",1,1,2,2\n'
    for name, raw in other_values(boxes, words(","), 8):
        files = {**people, "vggface2/bb_landmark/loose_bb_train.csv": raw}
        yield Sample("archive", f"vggface2-{name}", files)
    synsets: dict[Any, Content] = {
        f"imagenet/{part}/n0000000{c}/{k}.JPEG": jpeg
        for part in ("train", "val") for c in (1, 2, 3) for k in range(3)
    }  # fmt: skip
    for name, more in {
        "sound": {}, "mapping-escape": {"LOC_synset_mapping.txt": b"n00000001 \x1b[2J\n"},
        "mapping-long": {"LOC_synset_mapping.txt": b"n00000001 " + b"a" * 2**20},
        "class-is-a-link-to-the-root": {"train/n00000004": Link("/")},
        "sparse-image": {"train/n00000001/9.JPEG": Sparse(2**33, jpeg)},
    }.items():  # fmt: skip
        files = {**synsets, **{f"imagenet/{path}": content for path, content in more.items()}}
        yield Sample("archive", f"imagenet-{name}", files)
