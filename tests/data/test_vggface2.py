from support.pictures import write_jpeg

from benchmark.data.vggface2 import VggFace2


def test_vggface2(tmp_path):
    for part, people in (("train", (10, 9, 100)), ("test", (1, 2))):
        for p in people:
            for k in range(6):
                write_jpeg(tmp_path / part / f"n{p:06d}" / f"00{k + 6:02d}_01.jpg", p, (40, 30))
    (tmp_path / "identity_meta.csv").write_text(
        "Class_ID, Name, Sample_Num, Flag, Gender\n"
        'n000001, "A, b", 6, 0, m\nn000009, "C", 6, 1, f\nn000002, "D", 6, 0, f\n'
    )
    made = VggFace2(image_size=8, per_person=4).load(tmp_path)
    assert made.class_names == ("n000009 f", "n000010", "n000100", "n000001 m", "n000002 f")
    assert made.train.labels.tolist() == [0] * 6 + [1] * 6 + [2] * 6
    items = made.evaluations["test"]
    assert items.labels.tolist() == [3] * 4 + [4] * 4
    assert [items.group_names[g] for g in items.group] == ["male"] * 4 + ["female"] * 4
    assert made.fingerprint() == VggFace2(image_size=8, per_person=4).load(tmp_path).fingerprint()
    boxes = tmp_path / "bb_landmark"
    boxes.mkdir()
    names = [f"n{p:06d}/00{k + 6:02d}_01" for p in (9, 10, 100) for k in range(6)]
    rows = "\n".join(f'"{n}",5,-2,10,20' for n in names)
    (boxes / "loose_bb_train.csv").write_text(f"NAME_ID,X,Y,W,H\n{rows}\n")
    assert VggFace2(image_size=8).load(tmp_path).train.images.shape == (18, 3, 8, 8)
