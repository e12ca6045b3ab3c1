"""The papers' data sets, on small files of their formats."""

import io
import tarfile

import numpy as np
import pytest
from PIL import Image

from benchmark import run
from benchmark.data import (
    cifar100,
    encoded,
    imagenet,
    market1501,
    places365,
    vggface2,
)
from benchmark.data.files import natural
from benchmark.errors import BenchError
from benchmark.harness.execution import Compute
from benchmark.tasks.reidentification import Reidentification


def picture(path, value, size=(24, 24)):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (value % 256, 0, 0)).save(path, "JPEG", quality=100)


# --- cifar100


def cifar_files():
    rng = np.random.default_rng(0)
    made = {
        "fine_label_names.txt": b"\n".join(b"fine%d" % i for i in range(12)) + b"\n\n",
        "coarse_label_names.txt": b"animals\nthings\n",
    }
    for name, n in (("train.bin", 48), ("test.bin", 24)):
        rows = rng.integers(0, 256, (n, cifar100.RECORD), np.uint8)
        rows[:, 1] = np.arange(n) % 12
        rows[:, 0] = rows[:, 1] % 2
        made[name] = rows.tobytes()
    return made


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, raw in files.items():
            info = tarfile.TarInfo(f"cifar-100-binary/{name}")
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))


def test_cifar100(tmp_path):
    files = cifar_files()
    archive(tmp_path / cifar100.ARCHIVE, files)
    made = cifar100.load(tmp_path)
    raw = np.frombuffer(files["train.bin"], np.uint8).reshape(48, -1)
    np.testing.assert_array_equal(made.train.images[np.arange(48)].reshape(48, -1), raw[:, 2:])
    assert made.train.images.shape == (48, 3, 32, 32)
    assert made.train.labels.tolist() == [i % 12 for i in range(48)]
    items = made.evaluations["test"]
    assert items.group_names == ("animals", "things") and items.group.tolist() == [0, 1] * 12
    assert len(items.probes) + sum(map(len, items.galleries)) == 24
    folder = tmp_path / "x" / cifar100.FOLDER
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert cifar100.load(tmp_path / "x").fingerprint() == made.fingerprint()
    assert cifar100.source(tmp_path)["files"] != cifar100.source(tmp_path / "x")["files"]


def test_cifar100_refused(tmp_path):
    (tmp_path / "cifar-100-python").mkdir()
    with pytest.raises(BenchError, match="a pickle, which is never loaded"):
        cifar100.load(tmp_path)
    for name, raw, words in (
        ("train.bin", b"x" * 3000, "records of 3074 bytes, got 3000"),
        ("train.bin", b"\x00\x63" + bytes(3072), "fine labels below 12, got 99"),
        ("fine_label_names.txt", b"a\na\n", "expected different ones"),
    ):
        archive(tmp_path / cifar100.ARCHIVE, {**cifar_files(), name: raw})
        with pytest.raises(BenchError, match=words):
            cifar100.load(tmp_path)
    files = cifar_files()
    del files["test.bin"]
    archive(tmp_path / cifar100.ARCHIVE, files)
    with pytest.raises(BenchError, match=r"expected a member cifar-100-binary/test\.bin"):
        cifar100.load(tmp_path)
    (tmp_path / cifar100.ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(BenchError, match="archive is broken"):
        cifar100.load(tmp_path)


# --- imagenet


def test_imagenet_in_folders_and_as_the_competition_has_it(tmp_path, reds):
    synsets = ["n01440764", "n02000000", "n10000000"]
    for base in (tmp_path / "a", tmp_path / "b" / "ILSVRC" / "Data" / "CLS-LOC"):
        for i, s in enumerate(synsets):
            for k in (10, 9):
                picture(base / "train" / s / f"{s}_{k}.JPEG", 50 * i + k)
    lines = ["ImageId,PredictionString"]
    for i, s in enumerate(reversed(synsets)):
        name = f"ILSVRC2012_val_0000000{i}"
        picture(tmp_path / "a" / "val" / s / f"{name}.JPEG", 90 * i)
        picture(tmp_path / "b" / "ILSVRC/Data/CLS-LOC/val" / f"{name}.JPEG", 90 * i)
        lines.append(f"{name},{s} 1 2 3 4 ")
    (tmp_path / "b" / "LOC_val_solution.csv").write_text("\n".join(lines))
    mapping = "n01440764 tench, Tinca tinca\nn02000000 b\nn10000000 c\n"
    (tmp_path / "b" / "LOC_synset_mapping.txt").write_text(mapping)
    one, other = (imagenet.load(tmp_path / x, image_size=8) for x in "ab")
    assert one.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert reds(one.train.images) == [9, 10, 59, 60, 109, 110], "files count as numbers"
    assert one.class_names == tuple(synsets) and other.class_names == ("tench", "b", "c")
    for made in (one, other):
        items = made.evaluations["test"]
        assert sorted(zip(items.labels.tolist(), reds(items.images), strict=True)) == [
            (0, 180), (1, 90), (2, 0)
        ]  # fmt: skip
    picture(tmp_path / "a" / "val" / "n12345678" / "x.JPEG", 1)
    with pytest.raises(BenchError, match="n12345678 is not among those of train"):
        imagenet.load(tmp_path / "a")
    (tmp_path / "a" / "train" / "cats").mkdir()
    with pytest.raises(BenchError, match="expected a folder named as n01440764"):
        imagenet.load(tmp_path / "a")


# --- places365


def test_places365_classes_count_as_their_numbers(tmp_path, reds):
    names = [f"/{'ab'[i % 2]}/place_{i}" for i in range(11)]
    (tmp_path / places365.CATEGORIES).write_text(
        "\n".join(f"{name} {i}" for i, name in reversed(list(enumerate(names))))
    )
    train = [(f"{name}/0000000{k}.jpg", i) for i, name in enumerate(names) for k in (1, 2)]
    (tmp_path / places365.TRAIN).write_text("\n".join(f"{n} {i}" for n, i in train))
    for name, i in train:
        picture(tmp_path / "data_256_standard" / name[1:], 20 * i)
    val = [(f"Places365_val_{i:08d}.jpg", (i * 7) % 11) for i in range(11)]
    (tmp_path / places365.VAL).write_text("\n".join(f"{n} {i}" for n, i in val))
    for name, i in val:
        picture(tmp_path / "val_256" / name, 20 * i)
    made = places365.load(tmp_path, image_size=8)
    assert made.class_names[10] == "place 10"
    assert reds(made.train.images) == [20 * i for i in range(11) for _ in range(2)]
    items = made.evaluations["test"]
    assert reds(items.images) == [20 * i for i in items.labels]
    (tmp_path / places365.VAL).write_text("../../secret.jpg 1")
    with pytest.raises(BenchError, match="unexpected file name"):
        places365.load(tmp_path)
    (tmp_path / places365.VAL).write_text("a.jpg 11")
    with pytest.raises(BenchError, match="class number below 11, got 11"):
        places365.load(tmp_path)
    (tmp_path / places365.VAL).write_text("a.jpg 1\nnonsense")
    with pytest.raises(BenchError, match=r"places365_val.txt:2: expected a file.*'nonsense'"):
        places365.load(tmp_path)


# --- vggface2


def test_vggface2(tmp_path):
    for part, people in (("train", (10, 9, 100)), ("test", (1, 2))):
        for p in people:
            for k in range(6):
                picture(tmp_path / part / f"n{p:06d}" / f"00{k + 6:02d}_01.jpg", p, (40, 30))
    (tmp_path / "identity_meta.csv").write_text(
        "Class_ID, Name, Sample_Num, Flag, Gender\n"
        'n000001, "A, b", 6, 0, m\nn000009, "C", 6, 1, f\nn000002, "D", 6, 0, f\n'
    )
    made = vggface2.load(tmp_path, image_size=8, per_person=4)
    assert made.class_names == ("n000009 f", "n000010", "n000100", "n000001 m", "n000002 f")
    assert made.train.labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    items = made.evaluations["test"]
    assert items.labels.tolist() == [3] * 4 + [4] * 4
    assert [items.group_names[g] for g in items.group] == ["male"] * 4 + ["female"] * 4
    assert made.fingerprint() == vggface2.load(tmp_path, image_size=8, per_person=4).fingerprint()
    boxes = tmp_path / "bb_landmark"
    boxes.mkdir()
    (boxes / "loose_bb_train.csv").write_text("NAME_ID,X,Y,W,H\n")
    with pytest.raises(BenchError, match=r"expected a box of n000009/0006_01, found none"):
        vggface2.load(tmp_path)
    names = [f"n{p:06d}/00{k + 6:02d}_01" for p in (9, 10, 100) for k in range(6)]
    rows = "\n".join(f'"{n}",5,-2,10,20' for n in names)
    (boxes / "loose_bb_train.csv").write_text(f"NAME_ID,X,Y,W,H\n{rows}\n")
    assert vggface2.load(tmp_path, image_size=8).train.images.shape == (18, 3, 8, 8)


# --- market1501


@pytest.fixture
def market(tmp_path):
    root = tmp_path / "Market-1501-v15.09.15"
    names = {
        "bounding_box_train": ["0002_c1s1_000451_03", "0010_c2s1_000001_01", "0007_c6s3_000001_01"],
        "bounding_box_test": [
            "-1_c1s1_000401_03", "0000_c1s1_000151_01", "0001_c1s1_001051_03",
            "0001_c2s1_000301_01", "1501_c3s1_000301_00",
        ],
        "query": ["0001_c1s1_001051_00", "1501_c1s1_000001_00"],
    }  # fmt: skip
    for part, stems in names.items():
        for stem in stems:
            picture(root / part / f"{stem}.jpg", 10, (16, 32))
        (root / part / "Thumbs.db").write_bytes(b"x")
    return root


def test_market1501(market, tmp_path):
    made = market1501.load(tmp_path, height=16, width=8)
    assert made.train.images.shape == (3, 3, 16, 8)
    assert made.class_names == ("0002", "0007", "0010", "0001", "1501", "distractors")
    assert sorted(made.train.labels.tolist()) == [0, 1, 2]
    items = made.evaluations["test"]
    assert items.labels[items.query].tolist() == [3, 4]
    assert items.labels[items.gallery].tolist() == [5, 3, 3, 4, -1]
    assert items.camera[items.gallery].tolist() == [1, 1, 2, 3, 1]
    assert (made.facts["junk"], made.facts["distractors"]) == (1, 1)
    picture(market / "query" / "0002_c1s1_000001_00.jpg", 1)
    with pytest.raises(BenchError, match="person 0002 is in bounding_box_train and among those"):
        market1501.load(market)
    picture(market / "query" / "someone.jpg", 1)
    with pytest.raises(BenchError, match=r"expected a name as 0002_c1s1_000451_03\.jpg"):
        market1501.load(market)


def test_a_same_camera_match_never_counts(market, tmp_path):
    """Query 0001 and an image of the same person and camera are alike; only camera 2 counts."""

    items = market1501.load(tmp_path, height=16, width=8).evaluations["test"]
    vectors = np.eye(7, dtype=np.float32)
    q, distractor, same, other, junk = 0, 2, 3, 4, 6
    vectors[same] = vectors[q]
    vectors[junk] = vectors[q]
    vectors[other] = vectors[q] * 0.6 + vectors[distractor] * 0.8
    scores = Reidentification().evaluate(vectors, vectors, items, {"distance": "cosine"})
    assert scores.per_query["cmc_at_1"][0] == 1.0, "neither junk nor the same camera stand before"
    vectors[distractor] = vectors[q]
    vectors[other] = 0.6 * np.eye(7)[5]
    scores = Reidentification().evaluate(vectors, vectors, items, {"distance": "cosine"})
    assert scores.per_query["cmc_at_1"][0] == 0.0, "a same-camera match is none; distractors count"


# --- natural order


def test_natural_order():
    assert sorted(["10.jpg", "9.jpg", "1_10.jpg", "1_9.jpg"], key=natural) == [
        "1_9.jpg", "1_10.jpg", "9.jpg", "10.jpg"
    ]  # fmt: skip


# --- from files to a record


def test_market1501_from_files_to_a_record(tmp_path, monkeypatch, small):
    """Oblong images that stay in their files, identity-balanced batches, distractors and junk."""
    monkeypatch.setattr(encoded, "HELD_BYTES", 0)
    root = tmp_path / "data"
    for person in range(2, 14):
        for i in range(4):
            name = f"{person:04d}_c{1 + i % 3}s1_0000{i:02d}_00.jpg"
            picture(root / "bounding_box_train" / name, 20 * person, (8, 16))
    for person, part in ((15, "query"), (16, "query"), (15, "bounding_box_test"),
                         (16, "bounding_box_test"), (0, "bounding_box_test")):  # fmt: skip
        for camera in (1,) if part == "query" else (1, 2):
            name = f"{person:04d}_c{camera}s1_000001_00.jpg"
            picture(root / part / name, 12 * person, (8, 16))
    picture(root / "bounding_box_test" / "-1_c1s1_000001_00.jpg", 180, (8, 16))
    (record, _) = run(
        ["independent", "l2"], "market1501", "market1501", data_root=root, store=tmp_path / "s",
        out=tmp_path / "o", compute=Compute("cpu"),
        settings={**small, "recipe.batch_size": 8, "data.height": 16, "data.width": 8},
    )  # fmt: skip
    assert not list((tmp_path / "s").rglob("train.images.npy"))
    counts = record.counts["new/old"]
    assert (counts["n_query"], counts["n_gallery"], counts["n_junk"]) == (2, 7, 1)
    assert record.as_json()["dataset"]["facts"]["distractors"] == 2
