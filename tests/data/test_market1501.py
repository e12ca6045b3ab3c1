import numpy as np
import pytest
from support.pictures import write_jpeg
from support.toy_runs import run_below

from benchmark.data.market1501 import Market1501
from benchmark.errors import BenchError
from benchmark.tasks.reidentification import Reidentification


def boxes(root, **names):
    """Folders of boxes, by the stems of their names."""
    for part, stems in names.items():
        for stem in stems:
            write_jpeg(root / part / f"{stem}.jpg", 10, (16, 32))


@pytest.fixture
def market(tmp_path):
    """One below the data root, as the archive extracts."""
    root = tmp_path / "Market-1501-v15.09.15"
    names = {
        "bounding_box_train": ["0002_c1s1_000451_03", "0010_c2s1_000001_01", "0007_c6s3_000001_01"],
        "bounding_box_test": [
            "-1_c1s1_000401_03", "0000_c1s1_000151_01", "0001_c1s1_001051_03",
            "0001_c2s1_000301_01", "1501_c3s1_000301_00",
        ],
        "query": ["0001_c1s1_001051_00", "1501_c1s1_000001_00"],
    }  # fmt: skip
    boxes(root, **names)
    for part in names:
        (root / part / "Thumbs.db").write_bytes(b"x")


def test_market1501(market, tmp_path):
    made = Market1501(height=16, width=8).load(tmp_path)
    assert made.train.images.shape == (3, 3, 16, 8)
    assert made.class_names == ("0002", "0007", "0010", "0001", "1501", "distractors")
    assert sorted(made.train.labels.tolist()) == [0, 1, 2]
    items = made.evaluations["test"]
    assert items.labels[items.query].tolist() == [3, 4]
    assert items.labels[items.gallery].tolist() == [5, 3, 3, 4, -1]
    assert items.camera[items.gallery].tolist() == [1, 1, 2, 3, 1]
    assert (made.facts["junk"], made.facts["distractors"]) == (1, 1)


def test_a_same_camera_match_never_counts(market, tmp_path):
    """Query 0001 and an image of the same person and camera are alike; only camera 2 counts."""
    items = Market1501(height=16, width=8).load(tmp_path).evaluations["test"]
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


def test_market1501_from_files_to_a_record(tmp_path, monkeypatch, small):
    """Oblong images that stay in their files, identity-balanced batches, distractors and junk."""
    monkeypatch.setattr("benchmark.data.images.HELD_BYTES", 0)
    root = tmp_path / "data"
    for person in range(2, 14):
        for i in range(4):
            name = f"{person:04d}_c{1 + i % 3}s1_0000{i:02d}_00.jpg"
            write_jpeg(root / "bounding_box_train" / name, 20 * person, (8, 16))
    for person, part in ((15, "query"), (16, "query"), (15, "bounding_box_test"),
                         (16, "bounding_box_test"), (0, "bounding_box_test")):  # fmt: skip
        for camera in (1,) if part == "query" else (1, 2):
            name = f"{person:04d}_c{camera}s1_000001_00.jpg"
            write_jpeg(root / part / name, 12 * person, (8, 16))
    write_jpeg(root / "bounding_box_test" / "-1_c1s1_000001_00.jpg", 180, (8, 16))
    settings = {**small, "recipe.batch_size": 8, "data.height": 16, "data.width": 8}
    chosen = ["independent", "l2"], "market1501", "market1501"
    (record, _) = run_below(tmp_path, *chosen, data_root=root, settings=settings)
    assert not list((tmp_path / "store").rglob("train.images.npy"))
    counts = record.counts["new/old"]
    assert (counts["n_query"], counts["n_gallery"], counts["n_junk"]) == (2, 7, 1)
    assert record.as_json()["dataset"]["facts"]["distractors"] == 2
    # The stored dataset names files that have moved since.
    moved = root.rename(tmp_path / "moved")
    again = run_below(tmp_path, *chosen, data_root=moved, settings=settings | {"recipe.lr": 0.02})
    assert {each.dataset.fingerprint for each in again} == {record.dataset.fingerprint}


def people(tmp_path, names):
    boxes(tmp_path, **names)
    return Market1501(height=16, width=8).load(tmp_path)


def test_names_of_dukemtmc(tmp_path):
    made = people(tmp_path, {
        "bounding_box_train": ["0001_c2_f0046182", "0001_c8_f0046302", "0005_c1_f0000001"],
        "bounding_box_test": ["0002_c1_f0044158", "0002_c3_f0044160", "7140_c4_f0175846"],
        "query": ["0002_c2_f0044159"],
    })  # fmt: skip
    assert made.class_names == ("0001", "0005", "0002", "7140")
    items = made.evaluations["test"]
    assert items.camera.tolist() == [2, 1, 3, 4] and items.labels.tolist() == [2, 2, 2, 3]
    assert (made.facts["junk"], made.facts["distractors"]) == (0, 0)


def test_names_of_msmt17(tmp_path):
    """People count from 0 on both sides, and 0000 is one of them."""
    made = people(tmp_path, {
        "bounding_box_train": ["0000_000_01_0303morning_0008_0", "0001_002_15_0303noon_0022_1_ex"],
        "bounding_box_test": ["0000_000_01_0303morning_0015_0", "0000_001_12_0303afternoon_0666_1"],
        "query": ["0000_002_03_0113noon_0666_0"],
    })  # fmt: skip
    assert made.class_names == ("10000", "10001", "20000")
    items = made.evaluations["test"]
    assert items.camera.tolist() == [3, 1, 12] and items.labels.tolist() == [2, 2, 2]
    with pytest.raises(BenchError, match="or as of DukeMTMC or MSMT17"):
        people(tmp_path, {"query": ["0000_002_03_0113night_0666_0"]})
