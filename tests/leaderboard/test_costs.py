"""One cost model: the board, its chooser and the report on own vectors say the same."""

import inspect
import re
from dataclasses import replace

import pytest
from support.records import make_record
from support.sites import write
from support.upgrades import planted

import benchmark
from benchmark.cli.upgrading import upgrade as command
from benchmark.metrics.cost_model import Assumptions
from benchmark.upgrade.read.request import REEMBED, UpgradeRequest
from leaderboard.site import build_folder

ITEMS = 100_000_000


def test_board_and_upgrade_agree_on_the_same_hundred_million_items():
    made = planted(n=300, q=30, dim=12)
    given = made.arguments(made.sample(200)) | {"maps": "linear"}
    document = benchmark.upgrade(**given, items=ITEMS).document
    found = {each["name"]: each for each in document["strategies"]}
    board = Assumptions()
    assert board.items == ITEMS
    every = found[REEMBED]["cost"]
    assert (
        every["hours"] == pytest.approx(board.embedding(ITEMS)) == pytest.approx(1e8 / 500 / 3600)
    )
    assert every["money"] == pytest.approx(board.money(board.embedding(ITEMS)))
    # A map as fast as the one that was measured, of vectors that are embedded already.
    measured = replace(board, map_rate=1000 * found["linear"]["rows_per_s"], pairs=0)
    expected = measured.updating({"convert_multiply_adds": 1000}, trains=False)
    linear = found["linear"]["cost"]
    assert linear["hours"] == pytest.approx(expected)
    assert linear["money"] == pytest.approx(board.money(expected)) and linear["money"] > 0
    waiting = found["cascade"]["cost"]
    assert waiting["money_per_1000_queries"] == pytest.approx(
        board.money(board.embedding(1000 * (waiting["embedded"])))
    )


def test_every_default_is_that_of_the_model(tmp_path):
    assumed = Assumptions()
    for function in (UpgradeRequest, command):
        given = inspect.signature(function).parameters
        for name in ("throughput", "price"):
            assert given[name].default == getattr(assumed, name), function
    build_folder(write([make_record("bct"), make_record("independent")], tmp_path / "r"), tmp_path)
    page = (tmp_path / "index.html").read_text()
    for field, name in {"training": "training_hours", "rate": "map_rate"}.items() | {
        (name, name) for name in ("items", "throughput", "price", "pairs")
    }:
        (value,) = re.findall(rf'name="{field}" value="([^"]+)"', page)
        assert float(value) == getattr(assumed, name) and "e" not in value
