"""Files of pictures: what goes in comes out, and bad ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load, save

from benchmark.errors import BenchError
from benchmark.records.pictures import read_pictures, write_pictures


def webp(size: int, fill: int) -> bytes:
    return b"RIFF" + bytes(4) + b"WEBP" + bytes([fill]) * size


PICTURES = {7: webp(20, 1), 3: webp(0, 2), 70_000: webp(300, 3)}


def test_what_goes_in_comes_out(tmp_path) -> None:
    path = tmp_path / "below" / "some.safetensors"
    write_pictures(path, PICTURES)
    assert read_pictures(path) == PICTURES
    assert [p.name for p in path.parent.iterdir()] == ["some.safetensors"]
    write_pictures(path, {})
    assert read_pictures(path) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": None}, "rows: expected uint32"),
        ({"rows": np.zeros(3, np.int64)}, "rows: expected uint32"),
        ({"rows": np.zeros(2, np.uint32)}, "as many rows as ends"),
        ({"ends": np.array([12, 44, 9_000_000], np.uint64)}, "bytes up to the last end"),
        ({"ends": np.array([44, 12, 356], np.uint64)}, "a picture of"),
        ({"ends": np.array([12, 45, 356], np.uint64)}, "expected WebP"),
        ({"webp": np.zeros(356, np.uint8)}, "expected WebP"),
    ],
)
def test_refused(tmp_path, change, words) -> None:
    path = tmp_path / "some.safetensors"
    write_pictures(path, PICTURES)
    arrays = load(path.read_bytes()) | change
    path.write_bytes(save({name: a for name, a in arrays.items() if a is not None}))
    with pytest.raises(BenchError, match=words) as caught:
        read_pictures(path)
    assert str(caught.value).startswith(str(path))


def test_no_safetensors(tmp_path) -> None:
    path = tmp_path / "some.safetensors"
    path.write_bytes(b"<html>")
    with pytest.raises(BenchError, match="not a file of pictures"):
        read_pictures(path)
