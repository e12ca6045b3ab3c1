"""The records of the report's tests, and sites made of them."""

import os
import shutil

import pytest
from support.records import make_record
from support.sites import sample, write

from leaderboard.site import build_folder

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """A browser that is installed; tests that need one are passed over without."""
    playwright = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser found ({', '.join(BROWSERS)})")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def make():
    return make_record


@pytest.fixture(scope="session", autouse=True)
def cards(tmp_path_factory):
    """Cards are kept for the session, not in the user's cache."""
    before = os.environ.get("COMPATBENCH_STORE")
    os.environ["COMPATBENCH_STORE"] = str(tmp_path_factory.mktemp("store"))
    yield
    if before is None:
        del os.environ["COMPATBENCH_STORE"]
    else:
        os.environ["COMPATBENCH_STORE"] = before


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Boards of every kind, built once."""
    root = write(sample(), tmp_path_factory.mktemp("records"))
    out = tmp_path_factory.mktemp("out") / "site"
    page, skipped = build_folder(root, out)
    assert page == out / "index.html"
    assert not skipped
    return out
