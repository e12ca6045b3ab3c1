from support.pictures import write_jpeg

from benchmark.data.places365 import CATEGORIES, TRAIN, VAL, Places365


def test_places365_classes_count_as_their_numbers(tmp_path, reds):
    names = [f"/{'ab'[i % 2]}/place_{i}" for i in range(11)]
    (tmp_path / CATEGORIES).write_text(
        "\n".join(f"{name} {i}" for i, name in reversed(list(enumerate(names))))
    )
    train = [(f"{name}/0000000{k}.jpg", i) for i, name in enumerate(names) for k in (1, 2)]
    (tmp_path / TRAIN).write_text("\n".join(f"{n} {i}" for n, i in train))
    for name, i in train:
        write_jpeg(tmp_path / "data_256_standard" / name[1:], 20 * i)
    val = [(f"Places365_val_{i:08d}.jpg", (i * 7) % 11) for i in range(11)]
    (tmp_path / VAL).write_text("\n".join(f"{n} {i}" for n, i in val))
    for name, i in val:
        write_jpeg(tmp_path / "val_256" / name, 20 * i)
    made = Places365(image_size=8).load(tmp_path)
    assert made.class_names[10] == "place 10"
    assert reds(made.train.images) == [20 * i for i in range(11) for _ in range(2)]
    items = made.evaluations["test"]
    assert reds(items.images) == [20 * i for i in items.labels]
