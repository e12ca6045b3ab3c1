"""MS1MV3 and IJB-C, on small files of their formats."""

import struct

import numpy as np
from support.pictures import jpeg
from support.small_sets import MAGIC, faces, packed, packed_face, write_ijbc, write_records
from support.toy_runs import run_below

from benchmark.data.ms1mv3_ijbc import Ms1mv3Ijbc
from benchmark.data.recordio import joined


def test_ms1mv3_ijbc(tmp_path, reds):
    write_records(tmp_path / "ms1m-retinaface-t1", faces())
    write_ijbc(tmp_path / "IJBC")
    made = Ms1mv3Ijbc().load(tmp_path)
    assert reds(made.train.images) == [20 * (i // 2) for i in range(22)]
    assert made.train.labels.tolist() == [i // 2 for i in range(22)]
    assert made.class_names[9:] == ("person 9", "person 10", "subject 1", "subject 2", "subject 3")
    items = made.evaluations["test"]
    assert items.labels.tolist() == [11, 11, 11, 11, 12, 12, 13, 13]
    assert [g.tolist() for g in items.galleries] == [[11, 21], [31]]
    assert items.probes.tolist() == [12, 22, 32] and len(items.pairs) == 5
    np.testing.assert_allclose(items.weight, np.arange(1, 9) / 10)
    assert items.images.shape == (8, 3, 112, 112)


def test_faces_in_folders_count_as_numbers(tmp_path, reds):
    for person in (10, 9, 100):
        folder = tmp_path / "ms1mv3" / str(person)
        folder.mkdir(parents=True)
        for k in (10, 2):
            (folder / f"{k}.jpg").write_bytes(jpeg(person))
    write_ijbc(tmp_path / "IJBC")
    made = Ms1mv3Ijbc().load(tmp_path)
    assert reds(made.train.images) == [9, 9, 10, 10, 100, 100]
    assert made.class_names[:3] == ("person 9", "person 10", "person 100")


def test_records_that_contain_the_magic_number(tmp_path, reds):
    content = b"abcd" + MAGIC + b"efgh" + MAGIC + MAGIC + b"x" + MAGIC + b"yz"
    assert joined(packed(content)[8 : 8 + len(content) + 12]) == content
    raw = jpeg(200)
    # A comment of the JPEG holds it; the image comes after.
    pad = b"\xff\xfe" + struct.pack(">H", 2 + 6 + 4) + b"12" + MAGIC + b"3456"
    with_comment = raw[:2] + pad + raw[2:]
    assert with_comment.index(MAGIC) % 4 == 0
    write_records(
        tmp_path, [packed_face(0, jpeg(10)), packed_face(1, with_comment), packed_face(2, jpeg(90))]
    )
    write_ijbc(tmp_path / "IJBC")
    made = Ms1mv3Ijbc().load(tmp_path)
    assert reds(made.train.images) == [10, 200, 90] and made.train.labels.tolist() == [0, 1, 2]


# --- from files to records


def independent(root, protocol, settings):
    write_records(root / "ms1mv3", faces(n_people=20))
    write_ijbc(root / "IJBC")
    settings |= {"recipe.batch_size": 8, "data.image_size": 16}
    (record,) = run_below(
        root, ["independent"], protocol, "ms1mv3-ijbc", data_root=root, settings=settings
    )
    return record


def test_ijbc_from_files_to_a_record(tmp_path, small):
    record = independent(tmp_path, "ijbc-1v1", small | {"track.far": [0.5]})
    assert record.status == "done"
    assert set(record.scores["old/new"]) == set(record.scores["new/old"])
    counts = record.counts["old/new"]
    assert (counts["n_genuine"], counts["n_impostor"]) == (3, 2)


def test_ijbc_1n_from_files_to_a_record(tmp_path, small):
    """Each gallery refuses the probes of people who are enrolled in the other one only."""
    record = independent(tmp_path, "ijbc-1vn", small | {"track.fpir": [0.5]})
    counts, scores = record.counts["new/old"], record.scores["new/old"]
    assert [counts[f"n_enrolled_g{i}"] for i in (1, 2)] == [2, 1]
    assert [counts[f"n_mated_g{i}"] for i in (1, 2)] == [2, 1]
    assert [counts[f"n_outsiders_g{i}"] for i in (1, 2)] == [1, 2]
    # Half of one outsider cannot be accepted: G1 has no such point, G2 accepts one of its two.
    assert counts["n_accepted_outsiders_g2_tpir_at_fpir_5e-1"] == 1
    assert scores["g2_rank_1"] == 1.0 and scores["g2_tpir_at_fpir_5e-1"] in (0.0, 1.0)
    assert not {"g1_tpir_at_fpir_5e-1", "tpir_at_fpir_5e-1"} & scores.keys()  # no mean of one
    assert scores["rank_1"] == (scores["g1_rank_1"] + scores["g2_rank_1"]) / 2


def test_two_labels_an_image_and_no_table_of_people(tmp_path, reds):
    """As ``im2rec`` and others pack: the person, and a label that is not used."""
    records = [packed_face([i // 2, 0.0], jpeg(20 * (i // 2)), i) for i in range(6)]
    write_records(tmp_path, records)
    write_ijbc(tmp_path / "IJBC")
    made = Ms1mv3Ijbc().load(tmp_path)
    assert made.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert reds(made.train.images) == [0, 0, 20, 20, 40, 40]


def test_a_mark_of_utf_8_in_front_of_any_table(tmp_path):
    write_records(tmp_path, faces())
    plain = Ms1mv3Ijbc().load(tmp_path) if write_ijbc(tmp_path / "IJBC") else None
    for table in [*(tmp_path / "IJBC" / "meta").iterdir(), tmp_path / "train.idx"]:
        table.write_bytes(b"\xef\xbb\xbf" + table.read_bytes())
    marked = Ms1mv3Ijbc().load(tmp_path)
    assert (marked.evaluations["test"].pairs == plain.evaluations["test"].pairs).all()
    assert marked.train.labels.tolist() == plain.train.labels.tolist()
