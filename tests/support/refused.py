"""Data that must be refused."""

from pathlib import Path
from typing import Any

import pytest

from benchmark.data.base import read_options
from benchmark.errors import BenchError


def refused_data(dataset: str, root: Path | None, *parts: str, **options: Any) -> None:
    """Reading the data ends in one printable line that has these parts."""
    with pytest.raises(BenchError) as error:
        read_options(dataset, options).load(root)
    message = str(error.value)
    assert message.isprintable()
    for part in parts:
        assert part in message
