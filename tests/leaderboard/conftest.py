"""The records of the report's tests, and sites made of them."""

import pytest
from support.records import make_record
from support.sites import sample, write

from leaderboard.site import build_folder


@pytest.fixture
def make():
    return make_record


@pytest.fixture(scope="session", autouse=True)
def _kept_cards(cards):
    """Cards are kept for the session, not in the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPATBENCH_STORE", str(cards))
        yield


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Boards of every kind, built once."""
    root = write(sample(), tmp_path_factory.mktemp("records"))
    out = tmp_path_factory.mktemp("out") / "site"
    page, skipped = build_folder(root, out)
    assert page == out / "index.html"
    assert not skipped
    return out
