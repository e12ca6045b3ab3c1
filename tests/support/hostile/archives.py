"""Hostile archives and tables of datasets: what their readers open below a data root."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping

from support.hostile import TOKEN, Content, Files, Link, Sample, Sparse, in_place
from support.hostile.images import encoded, picture, png

ZIP = "omniglot/images_background.zip"
TAR = "cifar100/cifar-100-binary.tar.gz"
_TIME = (2020, 1, 1, 0, 0, 0)


def archives() -> Iterator[Sample]:
    """Samples of every reader; the first folder of a path is the dataset."""
    for name, raw in _zips():
        yield Sample("archive", f"omniglot-{name}", {ZIP: raw})
    for name, raw in _tars():
        yield Sample("archive", f"cifar100-{name}", {TAR: raw})
    yield from _renamed(in_place("archive", ZIP), "omniglot")
    yield from _renamed(in_place("archive", TAR), "cifar100")
    yield from _cifar_files()
    yield from _faces()
    yield from _lists()


def _renamed(samples: Iterator[Sample], prefix: str) -> Iterator[Sample]:
    for sample in samples:
        yield Sample("archive", f"{prefix}-{sample.name}", sample.files)


def zipped(entries: Mapping[str, bytes]) -> bytes:
    """A zip archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in entries.items():
            archive.writestr(zipfile.ZipInfo(name, _TIME), raw, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _drawings() -> dict[str, bytes]:
    return {
        f"images_background/A{a}/character{c:02d}/{10 * a + c:04d}_{w:02d}.png": encoded(
            picture(100 * a + 10 * c + w, mode="L")
        )
        for a in (1, 2) for c in (1, 2, 3) for w in range(1, 9)
    }  # fmt: skip


def _zips() -> Iterator[tuple[str, bytes]]:
    entries = _drawings()
    sound = zipped(entries)
    yield "sound", sound
    drawing = next(iter(entries.values()))
    for name, member in {
        "parent": "../../outside/planted.png", "absolute": "/tmp/planted.png",
        "inner-parent": "images_background/../../character01/0001_01.png",
        "backslashes": "..\\..\\x.png", "escape": "A\x1b[2J/character01/0001_01.png",
        "markup": f"<img src=x{TOKEN}>/character09/0001_01.png",
        "dots": "../character01/0001_01.png",
        "line-break": "A\nb/character09/0001_01.png",
        "long": "A" * 60_000 + "/character01/0001_01.png",
        "null": "A\0/character09/0001_01.png", "right-to-left": "\u202e/character09/0001_01.png",
        "digits": "A1/character" + "9" * 5000 + "/0001_01.png",
        "unicode-digits": "A1/character٣٣/0001_01.png",
    }.items():  # fmt: skip
        yield f"member-{name}", zipped({**entries, member: drawing})
    yield "member-of-900-mib", zipped({**entries, "A1/character01/0001_09.png": bytes(900 * 2**20)})
    yield "20000-members", zipped({f"A1/character01/0001_{i:02d}.png": b"" for i in range(20_000)})
    yield "archive-in-archive", zipped({"A1/character01/0001_01.png": sound})
    yield "huge-drawing", zipped({**entries, "A1/character01/0001_09.png": png(30_000, 30_000)})
    name = b"images_background/A1/character01/0011_01.png"
    local, central = sound.find(name), sound.rfind(name)
    for label, at, value in (
        ("declares-less", central - 46 + 24, struct.pack("<I", 5)),
        ("declares-4-gib", central - 46 + 24, struct.pack("<I", 2**32 - 2)),
        ("encrypted", central - 46 + 8, b"\x01\x00"),
        ("method-unknown", central - 46 + 10, struct.pack("<H", 99)),
        ("method-lzma", central - 46 + 10, struct.pack("<H", 14)),
        ("wrong-check", central - 46 + 16, b"\0\0\0\0"),
        ("offset-beyond", central - 46 + 42, struct.pack("<I", 2**31)),
        ("offset-of-another", central - 46 + 42, struct.pack("<I", 0)),
        ("zip64-nonsense", central - 46 + 30, b"\xff\xff"),
        ("local-header-broken", local - 30, b"XXXX"),
        ("needs-version-99", central - 46 + 6, struct.pack("<H", 990)),
    ):  # fmt: skip
        made = bytearray(sound)
        made[at : at + len(value)] = value
        yield label, bytes(made)
    end = sound.rfind(b"PK\x05\x06")
    for label, at, value in (
        ("count-of-65535", end + 8, b"\xff\xff\xff\xff"),
        ("directory-beyond", end + 16, b"\xff\xff\xff\x7f"),
        ("directory-of-2-gib", end + 12, b"\xff\xff\xff\x7f"),
        ("comment-beyond", end + 20, b"\xff\xff"),
    ):  # fmt: skip
        made = bytearray(sound)
        made[at : at + len(value)] = value
        yield label, bytes(made)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("images_background/A1/character01/0011_09.png", _TIME)
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    yield "member-is-a-link", out.getvalue()
    # Many members that share one body of zeros, as Fifield's bomb has it.
    yield "overlapping", _overlapping(2000)
    yield "cut", sound[: len(sound) // 2]
    yield "no-zip", b"PK\x03\x04" + bytes(100)


def _overlapping(n: int) -> bytes:
    body = zipped({"A1/character01/0001_01.png": bytes(2**20)})
    start = body.find(b"PK\x01\x02")
    record, end = body[start : body.rfind(b"PK\x05\x06")], body[body.rfind(b"PK\x05\x06") :]
    many = b"".join(
        record.replace(b"0001_01.png", b"%04d_%02d.png" % (i % 9999, i % 99)) for i in range(n)
    )
    counts = struct.pack("<HHII", n, n, len(many), start)
    return body[:start] + many + end[:8] + counts + end[20:]


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


def _member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def _tars() -> Iterator[tuple[str, bytes]]:
    files = _cifar()
    sound = tarred(files)
    yield "sound", sound
    rest = {name: raw for name, raw in files.items() if name != "train.bin"}
    for label, kind, link in (
        ("link-to-a-secret", tarfile.SYMTYPE, "/etc/passwd"),
        ("hard-link-out", tarfile.LNKTYPE, "/etc/passwd"),
        ("link-to-itself", tarfile.SYMTYPE, "train.bin"), ("device", tarfile.CHRTYPE, ""),
        ("pipe", tarfile.FIFOTYPE, ""), ("folder", tarfile.DIRTYPE, ""), ("unknown", b"Z", ""),
    ):  # fmt: skip
        info = _member("cifar-100-binary/train.bin", kind, link)
        info.devmajor, info.devminor = 1, 5
        yield f"train-is-{label}", tarred(rest, (info,))
    for label, name in (("parent", "../../outside/train.bin"), ("absolute", "/tmp/train.bin")):
        yield f"member-{label}", tarred(files, (_member(name, tarfile.REGTYPE),))
    for label, name in (("escape", b"a\x1b[2J"), ("markup", f"<img src=x{TOKEN}>".encode()),
                        ("not-ascii", b"\xff\xfe"), ("twice", b"fine1"),
                        ("long", b"n" * 10**6)):  # fmt: skip
        names = files["fine_label_names.txt"].replace(b"fine3", name)
        yield f"label-{label}", tarred(files | {"fine_label_names.txt": names})
    yield "no-labels", tarred(files | {"fine_label_names.txt": b""})
    yield "label-beyond", tarred(files | {"train.bin": b"\xff" * 3074})
    yield "half-a-record", tarred(files | {"train.bin": files["train.bin"][:-5]})
    yield "bomb-500-mib", tarred({**rest, "train.bin": bytes(500 * 2**20)})
    yield "bomb-of-labels", tarred(files | {"fine_label_names.txt": b"a\n" * (50 * 2**20)})
    yield "gzip-of-zeros", gzip.compress(bytes(300 * 2**20), mtime=0)
    yield (
        "20000-members",
        tarred(files, tuple(_member(f"x{i}", tarfile.REGTYPE) for i in range(20_000))),
    )
    yield "cut", sound[: len(sound) // 2]
    yield "gzip-of-text", gzip.compress(b"no tar", mtime=0)
    plain = gzip.decompress(sound)
    for label, at, value in (
        ("size-of-8-gib", 124, b"77777777777\0"), ("size-negative", 124, b"\xff" * 12),
        ("size-letters", 124, b"planted\0    "), ("wrong-check", 148, b"000000\0 "),
    ):  # fmt: skip
        made = bytearray(plain)
        made[at : at + len(value)] = value
        if at != 148:  # with the check that fits
            made[148:156] = b" " * 8
            made[148:156] = b"%06o\0 " % sum(made[:512])
        yield label, gzip.compress(bytes(made), mtime=0)
    pax = b"30 path=" + b"a" * 21 + b"\n"
    for label, body in (("pax-nonsense", b"\xff" * 600), ("pax-length", b"99999 path=x\n"),
                        ("pax-size", b"22 size=99999999999999\n"),
                        ("pax-sparse", b"28 GNU.sparse.realsize=9e99\n"),
                        ("pax", pax)):  # fmt: skip
        info = _member("x", tarfile.XHDTYPE)
        info.size = len(body)
        head = info.tobuf(tarfile.USTAR_FORMAT) + body + bytes(-len(body) % 512)
        yield label, gzip.compress(head * 3 + plain, mtime=0)


def _cifar_files() -> Iterator[Sample]:
    files: Files = {f"cifar100/cifar-100-binary/{k}": v for k, v in _cifar().items()}
    for name in ("train.bin", "fine_label_names.txt"):
        path = f"cifar100/cifar-100-binary/{name}"
        yield from _renamed(in_place("archive", path, files), f"cifar100-{name}")
    python = {"cifar100/cifar-100-python/train": b"\x80\x04."}
    yield Sample("archive", "cifar100-the-pickled-version", python)


def sound_tar() -> bytes:
    """An archive of small photographs as it should be."""
    return tarred(_cifar())


_MAGIC = struct.pack("<I", 0xCED7230A)
_BODY = struct.pack("<IfQQ", 2, 0.0, 0, 0) + struct.pack("<2f", 2.0, 3.0)


def sound_record() -> bytes:
    """The first record of packed faces, which says where people begin and end."""
    return _MAGIC + struct.pack("<I", len(_BODY)) + _BODY


def _faces() -> Iterator[Sample]:
    """InsightFace's packing."""
    magic, body, record = _MAGIC, _BODY, sound_record()
    for name, rec, idx in (
        ("record-of-500-mb", magic + struct.pack("<I", 2**29 - 1) + body, b"0\t0\n"),
        ("labels-of-4-billion", magic + struct.pack("<I", 24) + b"\xff" * 24, b"0\t0\n"),
        ("labels-nan", magic + struct.pack("<I", len(body)) + body[:24] + b"\xff" * 8, b"0\t0\n"),
        ("people-without-end", record.replace(struct.pack("<2f", 2, 3), struct.pack("<2f", 2,
        3e38)), b"0\t0\n"),
        ("images-without-end", record.replace(struct.pack("<2f", 2, 3), struct.pack("<2f", 1e15,
        2e15)), b"0\t0\n"),
        ("parts-without-end", (magic + struct.pack("<I", 2 << 29)) * 9, b"0\t0\n1\t8\n"),
        ("offset-negative", record, b"0\t-5\n"), ("offset-beyond", record, b"0\t99999\n"),
        ("offset-digits", record, b"0\t" + b"9" * 5000 + b"\n"),
        ("key-digits", record, b"9" * 400 + b"\t0\n"),
        ("index-of-text", record, b"planted\tx\n"), ("index-empty", record, b""),
        ("index-escape", record, b"\x1b[2J\t0\n"), ("index-fraction", record, b"0.5\t0\n"),
        ("index-20-mib", record, b"0\t0\n" * (5 * 2**20)), ("key-negative", record, b"-1\t0\n"),
        ("keys-twice", record, b"0\t0\n0\t0\n"), ("record-cut", record[:10], b"0\t0\n"),
    ):  # fmt: skip
        files = {"ms1mv3_ijbc/train.rec": rec, "ms1mv3_ijbc/train.idx": idx}
        yield Sample("archive", f"faces-{name}", files)


def _lists() -> Iterator[Sample]:
    """Lists of images that lie beside them."""
    jpeg = encoded(picture(1, (32, 32)), "JPEG")
    categories = b"".join(b"/a/place%d %d\n" % (i, i) for i in range(4))
    images: dict[str | bytes, Content] = {
        f"places365/data_256_standard/a/{i}.jpg": jpeg for i in range(4)
    } | {f"places365/val_256/{i}.jpg": jpeg for i in range(4)}
    train = b"".join(b"/a/%d.jpg %d\n" % (i, i) for i in range(4))
    val = b"".join(b"%d.jpg %d\n" % (i, i) for i in range(4))

    def places(name: str, first: bytes = categories, second: bytes = train) -> Sample:
        return Sample("archive", f"places365-{name}", {
            **images, "places365/categories_places365.txt": first,
            "places365/places365_train_standard.txt": second, "places365/places365_val.txt": val,
        })  # fmt: skip

    for name, line in (
        ("parent", b"../../outside/keep.jpg 0"), ("absolute", b"//etc/passwd.jpg 0"),
        ("digits", b"/a/0.jpg " + b"9" * 5000),
        ("escape", b"\x1b[2J 0"), ("long", b"a" * 2**20 + b".jpg 0"), ("not-utf-8", b"\xff.jpg 0"),
        ("null", b"a\0.jpg 0"), ("missing", b"/a/none.jpg 0"), ("arabic", "/a/0.jpg ٣".encode()),
    ):  # fmt: skip
        yield places(f"list-{name}", second=train + line + b"\n")
    yield places("category-digits", categories + b"/a/x " + b"9" * 5000 + b"\n")
    yield places("category-twice", categories + b"/a/x 0\n")
    yield places("list-of-60-mib", second=train + b"\n" * (60 * 2**20))
    yield places("category-of-markup", categories.replace(b"place1", f"<{TOKEN}>".encode()))
    market = "market1501/bounding_box_train"
    for name, file in (
        ("escape", b"\x1b[2J.jpg"), ("digits", b"0002_c1s1_" + b"9" * 200 + b"_03.jpg"),
        ("not-utf-8", b"\xff.jpg"),
        ("arabic", "٠٠٠٢_c1s1_000451_03.jpg".encode()),
    ):  # fmt: skip
        files: Files = {market.encode() + b"/" + file: jpeg}
        yield Sample("archive", f"market1501-{name}", files)
    people: dict[str | bytes, Content] = {
        f"vggface2/{part}/n00000{p}/000{k}_01.jpg": jpeg
        for part, p in (("train", 1), ("train", 2), ("test", 3), ("test", 4)) for k in range(4)
    }  # fmt: skip
    for name, content in (
        ("box-digits", b"NAME_ID,X,Y,W,H\n\"n000001/0000_01\",1,1," + b"9" * 400 + b",2\n"),
        ("box-escape", b"\x1b[2J\n"), ("box-empty", b""), ("box-null", bytes(1000)),
    ):  # fmt: skip
        files = {**people, "vggface2/bb_landmark/loose_bb_train.csv": content}
        yield Sample("archive", f"vggface2-{name}", files)
    synsets: dict[str | bytes, Content] = {
        f"imagenet/{part}/n0000000{c}/{k}.JPEG": jpeg
        for part in ("train", "val") for c in (1, 2, 3) for k in range(3)
    }  # fmt: skip
    yield Sample("archive", "imagenet-sound", synsets)
    for name, content in (
        ("mapping-escape", b"n00000001 \x1b[2J\n"), ("mapping-long", b"n00000001 " + b"a" * 2**20),
    ):  # fmt: skip
        files = {**synsets, "imagenet/LOC_synset_mapping.txt": content}
        yield Sample("archive", f"imagenet-{name}", files)
    linked = {**synsets, "imagenet/train/n00000004": Link("/")}
    yield Sample("archive", "imagenet-class-is-a-link-to-the-root", linked)
    sparse = {**synsets, "imagenet/train/n00000001/9.JPEG": Sparse(2**33, jpeg)}
    yield Sample("archive", "imagenet-sparse-image", sparse)
