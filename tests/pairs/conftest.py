"""A record of one report, of which the tests of several modules know every number."""

import pytest
from support.pair_records import made, row


@pytest.fixture
def one():
    """One report: re-embedding is the best, a bridge by rotation loses."""
    return made(
        keep_old=row(3000, 3000, 3200), re_embed=row(4000, 4100, 4200, sampling=150),
        procrustes__query=row(3500, 3500, 2700), linear__query=row(3600, 3600, 3800),
        naive=row(200, 200, 100), cascade=row(3900, 3900, 4300, sampling=50),
    )  # fmt: skip
