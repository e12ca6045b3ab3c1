"""Datasets that are refused: each in one line that says the file, what was expected, what came.

A row of the table is a dataset, what becomes of a sound folder of it, and the words of the line.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from support.pictures import write_noise
from support.refused import refused_data
from support.small_sets import (
    HEADER_OF_GROCERY,
    N_CLASSES,
    SOUND,
    drawing,
    faces,
    members,
    packed_face,
    write_records,
    write_zip,
)

from benchmark.data.cifar100 import FOLDER
from benchmark.data.places365 import VAL

Harm = Mapping[str, bytes | str | None] | Callable[[Path], object]
"""File -> what it holds then, or that it is gone."""
SYNSETS = [f"n{i + 1:08d}" for i in range(N_CLASSES)]
ORDER, CAPTIONS = {"class_order": "order.txt"}, {"captions": "captions.csv"}
CIFAR, META, DRAWN = f"{FOLDER}/", "IJBC/meta/", "images_background.zip"
LETTER = "Greek/character02/0002_03.png"


def drawings(changed: bytes | None, name: str = LETTER) -> Callable[[Path], None]:
    """An archive of Omniglot with another content of a drawing, or without it."""

    def write(root: Path) -> None:
        entries = dict(members()) | {name: changed}
        write_zip(root / DRAWN, [(n, raw) for n, raw in entries.items() if raw is not None])

    return write


def one_of_a_class(root: Path) -> None:
    for path in sorted((root / "d").iterdir())[1:]:
        path.unlink()


def emptied(part: str) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        shutil.rmtree(root / part)
        (root / part).mkdir()

    return harm


def two_records(root: Path) -> None:
    write_records(root, [packed_face([99, 98])])


def others_asked(root: Path) -> None:
    shutil.rmtree(root / "query")
    for i in range(2):
        write_noise(root / "query" / "q" / f"{i}.png")


def cut(root: Path) -> None:
    path = write_noise(root / "c" / "9.jpg", size=(200, 200))
    path.write_bytes(path.read_bytes()[:-2000])


ROWS: list[tuple[str, Harm, str, dict]] = [
    # lists of classes, and captions, beside a dataset
    *(("imagenet", {"order.txt": "\n".join(names)}, words, ORDER) for names, words in (
        (SYNSETS[1:], "expected all 20 classes, 'n00000001' is missing"),
        (SYNSETS[2:], "'n00000001' is missing and 1 more"),
        ([*SYNSETS, SYNSETS[0]], "order.txt:21: class 'n00000001' comes twice"),
        (["n00000021"], "order.txt:1: unknown class 'n00000021'; did you mean"))),
    *(("imagenet", {}, "data.class_order: expected a path below the data", {"class_order": name})
      for name in ("../order.txt", "/order.txt")),
    ("imagenet", {}, "no.csv does not exist", {"captions": "no.csv"}),
    *(("imagenet", {"captions.csv": text}, words, CAPTIONS) for text, words in (
        ("name,caption\n", "captions.csv:1: expected the header file,caption"),
        ("file,caption\na.jpg\n", "captions.csv:2: expected a file and its caption, got 1 cells"),
        ("file,caption\na.jpg,\n", "captions.csv:2: expected a caption of printable letters"),
        ("file,caption\na.jpg,x\na.jpg,y\n", "captions.csv:3: 'a.jpg' has two captions"),
        ("file,caption\na.jpg,x\n", "expected a caption of every image, 'train/n0"))),
    # photographs of others
    ("imagenet", {"val/n12345678/x.JPEG": b"x"}, "n12345678 is not among those of train", {}),
    ("imagenet", lambda root: (root / "train" / "cats").mkdir(),
     "expected a folder named as n01440764", {}),
    *(("places365", {VAL: text}, words, {}) for text, words in (
        ("../../secret.jpg 1", "unexpected file name"),
        ("a.jpg 20", "class number below 20, got 20"),
        ("a.jpg 1\nnonsense", "places365_val.txt:2: expected a file"))),
    ("vggface2", {"bb_landmark/loose_bb_train.csv": "NAME_ID,X,Y,W,H\n"},
     "expected a box of n000002/0001_01, found none", {}),
    ("market1501", {"query/0002_c1s1_000001_00.jpg": b"x"},
     "person 0002 is in bounding_box_train and", {}),
    ("market1501", {"query/someone.jpg": b"x"}, "expected a name as 0002_c1s1_000451_03.jpg", {}),
    ("cifar100", {f"{CIFAR}train.bin": b"x" * 3000}, "records of 3074 bytes, got 3000", {}),
    ("cifar100", {f"{CIFAR}train.bin": b"\x00\x63" + bytes(3072)}, "labels below 20, got 99", {}),
    ("cifar100", {f"{CIFAR}fine_label_names.txt": b"a\na\n"}, "expected different ones", {}),
    ("cifar100", {f"{CIFAR}fine_label_names.txt": b"a\n" * 40_000},
     "label names: expected at most 65536 bytes", {}),
    *(("grocery", {file: text}, words, {}) for file, text, words in (
        ("train.txt", "train/a.png, 1", "train.txt:1: expected a file and two numbers"),
        ("train.txt", "../a.png, 1, 1", "unexpected file name"),
        ("val.txt", "\n", "expected photographs, found none"),
        ("test.txt", "test/Gala_0.png, 6, 0", "expected classes below 6, got 6"),
        ("classes.csv", "a,b\n1,2", "expected columns Class Name"),
        ("classes.csv", f"{HEADER_OF_GROCERY}\nGala,1,Apple,0,/x,/icons/Gala.txt",
         "numbered from 0, got"),
        ("classes.csv", f"{HEADER_OF_GROCERY}\nGala,0,Apple,0,/x,/../Gala.txt",
         "unexpected file name"))),
    # faces: records, and tables of IJB-C
    ("ms1mv3-records", {"train.rec": bytes(40000)}, "expected the magic number", {}),
    ("ms1mv3-records", {"train.idx": "0\t999999999\n"}, "expected offsets below", {}),
    ("ms1mv3-records", {"train.idx": "zero"}, "a key and an offset", {}),
    ("ms1mv3-records", {"train.idx": None}, "expected train.idx beside it", {}),
    ("ms1mv3-records", lambda root: write_records(root, faces()[:5]),
     "record 23: not in the index", {}),
    ("ms1mv3-records", two_records, "record 0: expected where people begin", {}),
    *(("ms1mv3-records", {META + file: text}, words, {}) for file, text, words in (
        ("ijbc_template_pair_label.txt", "11 22 1\n", "11 and 22: the label contradicts"),
        ("ijbc_template_pair_label.txt", "11 99 0\n", "template 99 has no image"),
        ("ijbc_template_pair_label.txt", "11 22\n", "two templates and 0 or 1"),
        ("ijbc_face_tid_mid.txt", "1.jpg 11 100\n", "expected the 8 images"),
        ("ijbc_name_5pts_score.txt", "1.jpg 1 2 3\n", ":1: expected 1.jpg, ten coordinates"),
        ("ijbc_1N_gallery_G1.csv", "TEMPLATE_ID\n11,1,x\n11,2,x\n",
         "template 11 has subjects 1, 2"),
        ("ijbc_1N_gallery_G2.csv", "TEMPLATE_ID\n77,3,x\n", "template 31 is missing"))),
    # drawings
    *(("omniglot", drawings(raw), "image cannot be decoded", {})
      for raw in (b"no image", b"", dict(members())[LETTER][:-40], b"GIF89a")),
    ("omniglot", drawings(drawing(1, size=1500)),
     "expected at most 1048576 pixels, got 1500 x 1500", {}),
    ("omniglot", drawings(bytes(2**21)), "expected at most 1048576 bytes, got 2097152", {}),
    ("omniglot", drawings(None, "Latin/character01/0004_05.png"), "writer 05 is missing", {}),
    ("omniglot", lambda root: write_zip(root / DRAWN, members(writers=1)),
     "expected at least 4 classes by 6 writers, got 6 by 1", {}),
    ("omniglot", lambda root: write_zip(root / DRAWN, members(("Greek",))), "got 3 by 8", {}),
    *(("omniglot", lambda root, name=name: write_zip(
        root / DRAWN, [*members(), (name, b"x")], prefix=""), words, {}) for name in (
        "../../evil.png", "/etc/character01/0001_01.png", "../character01/0001_01.png", "../x",
        "/etc/passwd", "images_background/../../x", "Greek/character01/../0001_01.png",
        "a\x1b/x/0001_01.png", "Greek\\character01\\0001_01.png", "Greek/character01/0001_01.jpg",
        "Greek/characterA/0001_01.png", "Greek/character01/one.png", "readme.txt")
      for words in ("unexpected name, expected ALPHABET/",)),
    ("omniglot", {DRAWN: b"no archive"}, "images_background.zip: cannot be read", {}),
    ("omniglot", {DRAWN: None}, "no class folder found: expected images_background.zip", {}),
    ("omniglot", {}, "unknown key 'sed'; did you mean 'seed'", {"sed": 1}),
    # texts
    *(("banking77", {file: content}, words, {}) for file, content, words in (
        ("train.csv", "text;category\na;b\n", "train.csv: expected the columns text and category"),
        ("train.csv", "text,category\nalone\n", "train.csv: expected a text and a category"),
        ("train.csv", b"text,category\n\xff,b\n", "train.csv: expected text in UTF-8"),
        ("test.csv", "text,category\na,other\n", "test has a class that train has not: other"))),
    *(("banking77-lines", {file: content}, words, {}) for file, content, words in (
        ("docs.jsonl", '{"id": 1, "text": "a"}', "expected id and text as texts"),
        ("docs.jsonl", "{", "expected an object with id and text"),
        ("docs.jsonl", '{"id": "new", "text": "a"}', "expected a label of every text"),
        ("queries.labels.tsv", "id\tlabel\na", "expected an id and a label in each line"))),
    *(("wordnet", {"data.noun": f"  1 A licence  \n{line}\n"}, words, {}) for line, words in (
        ("0000000 03 n 01 x 0 000 | a", "line 2: expected a synset as wndb"),
        ("00000001 03 n 05 x 0 | a", "line 2: expected a synset as wndb"),
        ("00000001 77 n 01 x 0 000 | a", "line 2: expected a synset as wndb"),
        ("00000001 03 n 01 x 0 000 | a", "expected meanings with 5 texts of their own, got none"))),
    # folders of anybody's images
    *(("flat", {"c/2.png": raw, "c/3.png": raw + b"more"}, "c/2.png: image cannot be decoded", {})
      for raw in (b"", b"\x89PNG\r\n\x1a\nshort")),
    ("flat", {"c/2.png": b"no image"},
     "2.png: image cannot be decoded: cannot identify image file", {}),
    ("flat", cut, "9.jpg: image cannot be decoded", {}),
    ("flat", one_of_a_class, "class d: expected at least 2 images, got 1", {}),
    ("flat", emptied("d"), "d: class without an image", {}),
    ("flat", {"a/clip.mp4": b"x"}, "clip.mp4: unexpected file: expected an image (.avif .bmp", {}),
    ("flat", {}, "channels: expected 1 or 3, got 2", {"channels": 2}),
    ("flat", {}, "image_size: expected at least 8, got 4", {"image_size": 4}),
    ("flat", {}, "unknown key 'size'", {"size": 4}),
    ("three", {}, "expected at least 4 classes to split, got 3: a, b, c", {}),
    ("parted", emptied("query"),
     "query: no class folder found: expected query/CLASS/... beside train and gall", {}),
    ("parted", {"train/b/deeper/1.jpg": None},
     "class b: expected at least 2 images to train on, got 1", {}),
    ("parted", {"gallery/w/deeper/1.jpg": None},
     "class w: expected at least 2 images to evaluate (equal files count once)", {}),
    ("parted", others_asked,
     "gallery and query have no class in common: gallery has w, x, y, ..., query", {}),
    # tables that say what images are
    *(("listed", {"items.csv": text}, words, {}) for text, words in (
        ("", "expected a header of file and"),
        ("class,camera\nx,1\n", "expected a header of file and"),
        ("file,file\na,a\n", "expected a header of file and"),
        ("file,clas\na,b\n", "items.csv:1: unknown column 'clas'; did you mean 'class'?"),
        ("file;class\na;b\n", "items.csv:1: unknown column 'file;class'"),
        ("file,class\n", "expected images, found none"),
        ("file,class\na0.png\n", "items.csv:2: expected 2 cells, got 1"),
        ("file,class\nnone.png,a\n", "items.csv:2: file: there is no file 'none.png'"),
        ("file,class\n../x.png,a\n", "items.csv:2: file: expected a path below"),
        ("file,class\n/etc/passwd,a\n", "items.csv:2: file: expected a path below"),
        ("file,class\n" + "a0.png,a\n" * 2, "items.csv:3: file: 'a0.png' is listed twice"),
        ("file,class\na0.png,\n", "items.csv:2: class: expected a name of"),
        ("file,class\na0.png,\x1b[2J\n", "items.csv:2: class: expected a name of"),
        ("file,class,part\na0.png,a,probe\n", "items.csv:2: part: expected one of train, gal"),
        ("file\na0.png\n", "a0.png: expected inside a folder named after its class"),
        ('file,class\n"a0.png,a\n', "expected a CSV table in UTF-8"),
        ("file,class,part\na0.png,a,train\n", "gallery: expected images of this part, got none"))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "harm", "words", "options"), ROWS, ids=[f"{i}-{r[0]}" for i, r in enumerate(ROWS)]
)
def test_a_harmed_dataset_is_refused_in_one_line(tmp_path, name, harm, words, options):
    root = tmp_path / "data"
    dataset, write = SOUND[name]
    write(root)
    if callable(harm):
        harm(root)
    else:
        for file, content in harm.items():
            path = root / file
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refused_data(dataset, root, words, **options)
