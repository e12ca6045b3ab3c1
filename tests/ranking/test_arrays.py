"""Arguments: types, shapes and values that are taken or refused."""

import numpy as np
import pytest

from benchmark.ranking import arrays


def test_bfloat16_comes_as_bits():
    torch = pytest.importorskip("torch")
    values = torch.tensor([[1.0, -2.5, 3e38]], dtype=torch.bfloat16)
    bits = values.view(torch.uint16).numpy()
    assert arrays.from_bfloat16(bits).tolist() == values.float().tolist()
    assert arrays.compact("x", values).tolist() == bits.tolist()
    assert arrays.vectors("x", values).tolist() == values.float().tolist()
    with pytest.raises(ValueError, match="bits: expected uint16"):
        arrays.from_bfloat16(np.zeros(2, np.int16))
    with pytest.raises(ValueError, match="x: expected 2-D floats"):
        arrays.compact("x", bits)


def test_vectors_are_float32_in_rows():
    x = np.arange(6.0).reshape(2, 3)
    for value in (x, x.astype(np.float16), x.tolist(), np.asfortranarray(x)):
        out = arrays.vectors("x", value)
        assert out.dtype == np.float32 and out.flags.c_contiguous and (out == x).all()
    single = x.astype(np.float32)
    assert np.shares_memory(arrays.vectors("x", single), single)
    with pytest.raises(ValueError, match="x: expected dimension 4, got 3"):
        arrays.vectors("x", x.astype(np.float16), dim=4)
    with pytest.raises(ValueError, match="x: expected finite values, got inf in row 1"):
        arrays.vectors("x", [[0.0], [np.inf]])
    with pytest.raises(ValueError, match=r"values that float32 can hold, got 1e\+200 in row 1"):
        arrays.vectors("x", np.array([[0.0], [1e200]]))


def test_labels_keep_their_order():
    a, b = arrays.codes("labels", (["b", "a"], ["c", "a", "b"]), (2, 3))
    assert (a.tolist(), b.tolist()) == ([1, 0], [2, 0, 1])
    column = np.array(["c", "a", "b"], object)  # as of pandas
    assert arrays.codes("labels", (["b", "a"], column), (2, 3))[1].tolist() == b.tolist()
    near = np.array([2**53 + 1], np.uint64), np.array([2**53, 2**53 + 1, -1])
    a, b = arrays.codes("ids", near, (1, 3))
    assert (a[0] == b).tolist() == [False, True, False]
    big = np.array([2**64 - 1, 1], np.uint64)
    a, b = arrays.codes("labels", (big, big[:1]), (2, 1))
    assert (a.tolist(), b.tolist()) == ([1, 0], [1])
    assert [len(side) for side in arrays.both("ids", (None, None), (2, 3))] == [0, 0]
    with pytest.raises(ValueError, match="query_ids: expected both sides"):
        arrays.both("ids", (None, [1]), (1, 1))
