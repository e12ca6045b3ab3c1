"""Records made by hand."""

from collections.abc import Callable

import pytest
from support.records import UPPER, make_record

from benchmark.records.record import Record


@pytest.fixture
def make() -> Callable[..., Record]:
    """The factory."""
    return make_record


@pytest.fixture
def records() -> list[Record]:
    """Bounds, three methods of which two tie, and one that is not applicable."""
    return [
        make_record("independent", 0.01, UPPER),
        make_record("bct", 0.60, 0.80),
        make_record("l2", 0.60, 0.70),
        make_record("fct", 0.40, 0.90, converted=0.55),
        make_record("lwf", reason="needs the old head, <discarded> & gone_50%"),
    ]
