"""The papers' datasets as small files of their formats: a dozen classes of a few images."""

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

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
    """The published lists beside their folders."""
    names = [f"/p/place_{i}" for i in range(N_CLASSES)]
    root.mkdir(parents=True)
    (root / CATEGORIES).write_text("\n".join(f"{name} {i}" for i, name in enumerate(names)))
    for table, folder, n in ((TRAIN, "data_256_standard", N_TRAIN), (VAL, "val_256", N_TEST)):
        lines = []
        for i, name in enumerate(names):
            for k in range(n):
                file = f"{name}/{k:08d}.jpg" if table == TRAIN else f"Places365_val_{i}_{k}.jpg"
                write_noise(root / folder / file.removeprefix("/"), (12 * i, 200, 60 * k))
                lines.append(f"{file} {i}")
        (root / table).write_text("\n".join(lines))


def vggface2(root: Path) -> None:
    """Folders of people, and what is known of them."""
    lines = ["Class_ID, Name, Sample_Num, Flag, Gender"]
    for part, people in (("train", range(2, 2 + N_CLASSES)), ("test", range(100, 104))):
        for p in people:
            for k in range(N_TRAIN):
                write_noise(root / part / f"n{p:06d}" / f"{k + 1:04d}_01.jpg", (12 * p % 256, 9, 9))
            lines.append(f'n{p:06d}, "N", {N_TRAIN}, {int(part == "train")}, {"mf"[p % 2]}')
    (root / "identity_meta.csv").write_text("\n".join(lines))


def cifar100(root: Path) -> None:
    """The binary version, unpacked."""
    rng, folder = np.random.default_rng(0), root / FOLDER
    folder.mkdir(parents=True)
    (folder / "fine_label_names.txt").write_text("".join(f"fine{i}\n" for i in range(N_CLASSES)))
    (folder / "coarse_label_names.txt").write_text("animals\nthings\n")
    for name, n in (("train.bin", N_TRAIN), ("test.bin", N_TEST)):
        rows = rng.integers(0, 256, (n * N_CLASSES, RECORD), np.uint8)
        rows[:, 1] = np.arange(len(rows)) % N_CLASSES
        rows[:, 0] = rows[:, 1] % 2
        (folder / name).write_bytes(rows.tobytes())


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
