"""The records of the report's tests."""

import importlib.util
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[1] / "benchmark" / "report" / "conftest.py"


@pytest.fixture
def make():
    """The factory of records."""
    spec = importlib.util.spec_from_file_location("record_factory", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_record
