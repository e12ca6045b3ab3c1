"""Names of files: their order, and those that are refused."""

import pytest

from benchmark.data.files import Files, natural
from benchmark.errors import BenchError


@pytest.mark.parametrize("name", ["", "/etc/x", "a/../../x", "a\nb"])
def test_names_that_leave_the_folder(tmp_path, name):
    with pytest.raises(BenchError, match="unexpected file name"):
        Files.checked(tmp_path, [name])


def test_natural_order():
    assert sorted(["10.jpg", "9.jpg", "1_10.jpg", "1_9.jpg"], key=natural) == [
        "1_9.jpg", "1_10.jpg", "9.jpg", "10.jpg"
    ]  # fmt: skip
