import numpy as np
from support.small_sets import N_CLASSES, N_TRAIN, places365

from benchmark.data.places365 import Places365


def test_places365_classes_count_as_their_numbers(tmp_path, reds):
    places365(tmp_path / "data")
    made = Places365(image_size=8).load(tmp_path / "data")
    assert made.class_names[10] == "place 10"
    assert made.train.labels.tolist() == [i for i in range(N_CLASSES) for _ in range(N_TRAIN)]
    for items in (made.train, made.evaluations["test"]):  # reds are 12 apart, but for some noise
        assert np.abs(np.array(reds(items.images)) - 12 * items.labels).max() < 8
