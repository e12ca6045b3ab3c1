"""Datasets as small files of their formats: a dozen classes of a few images, or texts."""

import csv
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from benchmark.data.cifar100 import FOLDER, RECORD
from benchmark.data.places365 import CATEGORIES, TRAIN, VAL
from support.pictures import jpeg, write_noise

N_CLASSES, N_TRAIN, N_TEST = 20, 4, 2


def imagenet(root: Path) -> None:
    """Folders of synsets, and a caption of each image."""
    rows = []
    for i in range(N_CLASSES):
        for part, n in (("train", N_TRAIN), ("val", N_TEST)):
            for k in range(n):
                name = f"{part}/n{i + 1:08d}/image_{i}_{k}.JPEG"
                write_noise(root / name, (12 * i, 255 - 12 * i, 40 * k))
                rows.append((name, f"a picture of thing {i}, seen {k} times"))
    with (root / "captions.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "caption"), *rows])


def places365(root: Path) -> None:
    """The published lists, in no order of their numbers, beside their folders."""
    names = [f"/p/place_{i}" for i in range(N_CLASSES)]
    root.mkdir(parents=True)
    listed = (f"{name} {i}" for i, name in reversed([*enumerate(names)]))
    (root / CATEGORIES).write_text("\n".join(listed))
    for table, folder, n in ((TRAIN, "data_256_standard", N_TRAIN), (VAL, "val_256", N_TEST)):
        lines = []
        for i, name in enumerate(names):
            for k in range(n):
                file = f"{name}/{k:08d}.jpg" if table == TRAIN else f"Places365_val_{i}_{k}.jpg"
                write_noise(root / folder / file.removeprefix("/"), (12 * i, 200, 60 * k))
                lines.append(f"{file} {i}")
        (root / table).write_text("\n".join(lines if table == TRAIN else lines[::-1]))


def vggface2(root: Path) -> None:
    """Folders of people, and what is known of them."""
    lines = ["Class_ID, Name, Sample_Num, Flag, Gender"]
    for part, people in (("train", range(2, 2 + N_CLASSES)), ("test", range(100, 104))):
        for p in people:
            for k in range(N_TRAIN):
                write_noise(root / part / f"n{p:06d}" / f"{k + 1:04d}_01.jpg", (12 * p % 256, 9, 9))
            lines.append(f'n{p:06d}, "N", {N_TRAIN}, {int(part == "train")}, {"mf"[p % 2]}')
    (root / "identity_meta.csv").write_text("\n".join(lines))


def cifar100_files(
    n_classes: int = N_CLASSES, n_train: int = N_TRAIN, n_test: int = N_TEST
) -> dict[str, bytes]:
    """Files of the binary version; so many images of each class, the classes in turn."""
    rng = np.random.default_rng(0)
    files = {
        "fine_label_names.txt": "".join(f"fine{i}\n" for i in range(n_classes)).encode(),
        "coarse_label_names.txt": b"animals\nthings\n",
    }
    for name, n in (("train.bin", n_train), ("test.bin", n_test)):
        rows = rng.integers(0, 256, (n * n_classes, RECORD), np.uint8)
        rows[:, 1] = np.arange(len(rows)) % n_classes
        rows[:, 0] = rows[:, 1] % 2
        files[name] = rows.tobytes()
    return files


def cifar100(root: Path) -> None:
    """The binary version, unpacked."""
    (root / FOLDER).mkdir(parents=True)
    for name, content in cifar100_files().items():
        (root / FOLDER / name).write_bytes(content)


def market1501(root: Path) -> None:
    """Three folders of boxes."""
    parts = {
        "bounding_box_train": [(p, c) for p in range(2, 2 + N_CLASSES) for c in (1, 2, 3, 4)],
        "bounding_box_test": [(p, c) for p in (100, 101, 102) for c in (1, 2)] + [(0, 1), (-1, 2)],
        "query": [(p, 3) for p in (100, 101, 102)],
    }
    for part, boxes in parts.items():
        for person, camera in boxes:
            number = "-1" if person < 0 else f"{person:04d}"
            name = f"{number}_c{camera}s1_000451_03.jpg"
            write_noise(root / part / name, (10 * person % 256, 90, 50 * camera), (16, 32))


def ms1mv3_ijbc(root: Path) -> None:
    """Folders of people, and IJB-C."""
    _people(root / "ms1mv3", "{}")
    write_ijbc(root / "IJBC")


def imdbface_ijbc(root: Path) -> None:
    """Folders of people by IMDb's index, and IJB-C."""
    _people(root / "imdb_face", "nm{:07d}")
    write_ijbc(root / "IJBC")


def _people(folder: Path, name: str) -> None:
    for p in range(N_CLASSES):
        for k in range(N_TRAIN):
            write_noise(folder / name.format(p) / f"{k}.jpg", (12 * p, 100, 30 * k), (112, 112))


def write_ijbc(folder: Path) -> Path:
    """Subjects 1 and 2 with four images and two templates each, subject 3 outside G1."""
    meta = folder / "meta"
    meta.mkdir(parents=True)
    (folder / "loose_crop").mkdir()
    points = "38.3 51.7 73.5 51.5 56.0 71.7 41.5 92.4 70.7 92.2"
    rows = [
        ("1.jpg", 11, 100, 1), ("2.jpg", 11, 100, 1), ("3.jpg", 11, 101, 1), ("4.jpg", 12, 7, 1),
        ("5.jpg", 21, 1, 2), ("6.jpg", 22, 1, 2), ("7.jpg", 31, 5, 3), ("8.jpg", 32, 6, 3),
    ]  # fmt: skip
    for i, (name, *_) in enumerate(rows):
        (folder / "loose_crop" / name).write_bytes(jpeg(30 * i % 256))
    header = "TEMPLATE_ID,SUBJECT_ID,FILENAME"
    lists = {
        "ijbc_name_5pts_score.txt": [f"{r[0]} {points} 0.{i + 1}" for i, r in enumerate(rows)],
        "ijbc_face_tid_mid.txt": [f"{r[0]} {r[1]} {r[2]}" for r in rows],
        "ijbc_template_pair_label.txt": ["11 12 1", "21 22 1", "31 32 1", "11 22 0", "21 32 0"],
        "ijbc_1N_gallery_G1.csv": [header, "11,1,img/1.jpg", "11,1,img/2.jpg", "21,2,img/5.jpg"],
        "ijbc_1N_gallery_G2.csv": [header, "31,3,img/7.jpg"],
        "ijbc_1N_probe_mixed.csv": [header, "12,1,img/4.jpg", "22,2,a/6.jpg", "32,3,img/8.jpg"],
    }
    for name, lines in lists.items():
        (meta / name).write_text("\n".join(lines) + "\n")
    return meta


SETS: Mapping[str, Callable[[Path], None]] = {
    f.__name__: f
    for f in (imagenet, places365, vggface2, cifar100, market1501, ms1mv3_ijbc, imdbface_ijbc)
}


def write_all(folder: Path) -> dict[str, Path]:
    """Every dataset in a folder of its own, by name."""
    for name, write in SETS.items():
        write(folder / name)
    return {name: folder / name for name in SETS}


# --- Grocery Store

HEADER_OF_GROCERY = (
    "Class Name (str),Class ID (int),Coarse Class Name (str),Coarse Class ID (int),"
    "Iconic Image Path (str),Product Description Path (str)"
)
PRODUCTS = [("Gala", "Apple"), ("Anjou", "Pear"), ("Fuji", "Apple"), ("Lemon", "Lemon"),
            ("Lime", "Lime"), ("Beet", "Beet")]  # fmt: skip
PHOTOGRAPHS = {"train": 3, "val": 1, "test": 2}


def grocery(root):
    """Six products, of one colour each; brightness is the photograph."""
    lines = [HEADER_OF_GROCERY]
    for i, (name, kind) in enumerate(PRODUCTS):
        lines.append(f"{name},{i},{kind},0,/icons/{name}.jpg,/icons/{name}.txt")
        (root / "icons").mkdir(parents=True, exist_ok=True)
        (root / "icons" / f"{name}.txt").write_text(f"About {name}\n  in two lines.")
    (root / "classes.csv").write_text("\n".join(lines))
    for part, n in PHOTOGRAPHS.items():
        rows = []
        for i, (name, _) in enumerate(PRODUCTS):
            for k in range(n):
                path = root / part / f"{name}_{k}.png"
                path.parent.mkdir(exist_ok=True)
                level = 10 * list(PHOTOGRAPHS).index(part) + k
                Image.new("RGB", (40, 30), (40 * i, level, 9)).save(path)
                rows.append(f"{part}/{path.name}, {i}, 0")
        (root / f"{part}.txt").write_text("\n".join(rows) + "\n\n")
    (root / "LICENSE").write_text("MIT")
    return root


# --- faces as MXNet packs them

MAGIC = struct.pack("<I", 0xCED7230A)


def packed_face(labels, raw=b"", number=0):
    flag = 0 if isinstance(labels, int) else len(labels)
    label = float(labels) if flag == 0 else 0.0
    more = b"" if flag == 0 else struct.pack(f"<{flag}f", *labels)
    return struct.pack("<IfQQ", flag, label, number, 0) + more + raw


def packed(content):
    """As MXNet writes it: cut wherever the magic number stands on a multiple of four."""
    cuts = [at for at in range(0, len(content) - 3, 4) if content[at : at + 4] == MAGIC]
    ends = [*cuts, len(content)]
    starts = [0, *(at + 4 for at in cuts)]
    parts = [content[a:b] for a, b in zip(starts, ends, strict=True)]
    out = b""
    for i, part in enumerate(parts):
        kind = 0 if len(parts) == 1 else 1 if i == 0 else 3 if i == len(parts) - 1 else 2
        out += MAGIC + struct.pack("<I", kind << 29 | len(part)) + part + bytes(-len(part) % 4)
    return out


def write_records(folder, records):
    folder.mkdir(parents=True, exist_ok=True)
    rec, idx = b"", []
    for key, content in enumerate(records):
        idx.append(f"{key}\t{len(rec)}")
        rec += packed(content)
    (folder / "train.rec").write_bytes(rec)
    (folder / "train.idx").write_text("\n".join(idx) + "\n")


def faces(n_people=11, each=2):
    """Record 0, images, people: InsightFace's order."""
    n = n_people * each
    images = [packed_face([i // each, 0.0], jpeg(20 * (i // each)), i) for i in range(n)]
    people = [packed_face([1 + each * p, 1 + each * (p + 1)]) for p in range(n_people)]
    return [packed_face([n + 1, n + 1 + n_people]), *images, *people]


def ms1mv3_records(root):
    """InsightFace's records beside IJB-C."""
    write_records(root, faces())
    write_ijbc(root / "IJBC")


# --- Omniglot


def drawing(*key, mode="1", size=105):
    rng = np.random.default_rng(zlib.crc32(repr(key).encode()))
    image = Image.new("1", (size, size), 1)
    points = [tuple(int(v) for v in p) for p in rng.integers(10, size - 10, (4, 2))]
    ImageDraw.Draw(image).line(points, fill=0, width=3)
    out = io.BytesIO()
    image.convert(mode).save(out, "PNG")
    return out.getvalue()


def members(alphabets=("Greek", "Latin"), characters=3, writers=8):
    number = 0
    for alphabet in alphabets:
        for c in range(1, characters + 1):
            number += 1
            for w in range(1, writers + 1):
                name = f"{alphabet}/character{c:02d}/{number:04d}_{w:02d}.png"
                yield name, drawing(len(alphabet), c, w)


def write_zip(path, entries, prefix=None):
    prefix = f"{path.stem}/" if prefix is None else prefix
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(prefix, b"") if prefix else None
        for name, raw in entries:
            archive.writestr(prefix + name, raw)


def omniglot(root):
    """One archive of two alphabets."""
    root.mkdir(parents=True, exist_ok=True)
    write_zip(root / "images_background.zip", members())


# --- texts

ASKED = {
    "train": [("my card is late", "card"), ("where is it, please", "card"), ("pin?", "pin"),
              ("no pin", "pin"), ("a fee, why", "fee"), ("the fee", "fee")],
    "test": [("card lost", "card"), ("pin lost", "pin"), ("fees", "fee")],
}  # fmt: skip
LICENCE = "  1 This software and database is being provided  \n"
LINES = """\
00000001 05 n 02 dog 0 domestic_dog 0 001 @ 00000002 n 0000 | a tame animal; keeps watch; "the dog \
barked"; "walk the dog"
00000002 05 n 01 animal 0 000 | a living thing; keeps watch; "animals eat" - Anon
00000003 03 n 03 odd(p) 0 strange 0 queer(a) 0 000 | not usual; "an odd sock"; "how strange"
"""


def write_tables(root):
    root.mkdir(parents=True, exist_ok=True)
    for part, rows in ASKED.items():
        lines = [f'"{text}",{name}' for text, name in rows]
        (root / f"{part}.csv").write_text("\n".join(["text,category", *lines]) + "\n")
    return root


def write_lines(root):
    root.mkdir(parents=True, exist_ok=True)
    for side, part in (("docs", "train"), ("queries", "test")):
        rows = [*ASKED[part], ("", "pin"), ("of no class", "None")]
        texts = (json.dumps({"id": f"{side}{i}", "text": t}) for i, (t, _) in enumerate(rows))
        (root / f"{side}.jsonl").write_text("\n".join(texts))
        labels = (f"{side}{i}\t{name}" for i, (_, name) in enumerate(rows))
        (root / f"{side}.labels.tsv").write_text("\n".join(["id\tlabel", *labels]))
    return root


def write_wordnet(root, lines=LINES):
    root.mkdir(parents=True, exist_ok=True)
    for part in ("noun", "verb", "adj", "adv"):
        (root / f"data.{part}").write_text(LICENCE)
    (root / "data.noun").write_text(LICENCE + lines)
    return root


# --- folders of anybody's images


def flat(root, classes="abcdef", n=4):
    """One folder a class."""
    for c in classes:
        for i in range(n):
            write_noise(root / c / f"{i}.png")
    return root


def parted(root):
    """Folders of parts, and of classes within them."""
    for part, classes in (("train", "abcd"), ("gallery", "xyzw"), ("query", "xyz")):
        for c in classes:
            for i in range(2):
                write_noise(root / part / c / "deeper" / f"{i}.jpg")
    return root


def listed(root):
    """Images in one folder, and a table that says their classes."""
    names = [f"{c}{i}.png" for c in "abcdef" for i in range(2)]
    for name in names:
        write_noise(root / name)
    (root / "items.csv").write_text("\n".join(["file,class", *(f"{n},{n[0]}" for n in names)]))


SOUND = {name: (name, write) for name, write in SETS.items()} | {
    "grocery": ("grocery", grocery), "ms1mv3-records": ("ms1mv3_ijbc", ms1mv3_records),
    "omniglot": ("omniglot", omniglot), "banking77": ("banking77", write_tables),
    "banking77-lines": ("banking77", write_lines), "wordnet": ("wordnet", write_wordnet),
    "flat": ("folder", flat), "three": ("folder", lambda root: flat(root, "abc")),
    "parted": ("folder", parted), "listed": ("folder", listed),
}  # fmt: skip
"""Name -> the dataset, and what writes a sound folder of it."""
