from support.pictures import write_jpeg

from benchmark.data.imagenet import ImageNet


def test_imagenet_in_folders_and_as_the_competition_has_it(tmp_path, reds):
    synsets = ["n01440764", "n02000000", "n10000000"]
    for base in (tmp_path / "a", tmp_path / "b" / "ILSVRC" / "Data" / "CLS-LOC"):
        for i, s in enumerate(synsets):
            for k in (10, 9):
                write_jpeg(base / "train" / s / f"{s}_{k}.JPEG", 50 * i + k)
    lines = ["ImageId,PredictionString"]
    for i, s in enumerate(reversed(synsets)):
        name = f"ILSVRC2012_val_0000000{i}"
        write_jpeg(tmp_path / "a" / "val" / s / f"{name}.JPEG", 90 * i)
        write_jpeg(tmp_path / "b" / "ILSVRC/Data/CLS-LOC/val" / f"{name}.JPEG", 90 * i)
        lines.append(f"{name},{s} 1 2 3 4 ")
    (tmp_path / "b" / "LOC_val_solution.csv").write_text("\n".join(lines))
    mapping = "n01440764 tench, Tinca tinca\nn02000000 b\nn10000000 c\n"
    (tmp_path / "b" / "LOC_synset_mapping.txt").write_text(mapping)
    one, other = (ImageNet(image_size=8).load(tmp_path / x) for x in "ab")
    assert one.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert reds(one.train.images) == [9, 10, 59, 60, 109, 110], "files count as numbers"
    assert one.class_names == tuple(synsets) and other.class_names == ("tench", "b", "c")
    for made in (one, other):
        items = made.evaluations["test"]
        assert sorted(zip(items.labels.tolist(), reds(items.images), strict=True)) == [
            (0, 180), (1, 90), (2, 0)
        ]  # fmt: skip
