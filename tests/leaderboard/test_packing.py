"""Rows that a page carries: nothing is lost, and much is saved."""

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leaderboard.pages.board import pack
from leaderboard.rank.boards import rounded

SCORES = st.none() | st.floats(-100, 100).map(rounded)
WORDS = st.none() | st.sampled_from(["", "bct", "1", "a|b"]) | st.integers(0, 9) | st.booleans()


def unpacked(shared, lines):
    """As ``assets/kit.js`` has it."""

    def value(part, is_score):
        if not is_score:
            return shared["words"][int(part)]
        return None if part == "" else int(part) / 1e6

    return [
        {c: value(part, s) for c, part, s in
         zip(shared["columns"], line.split("|"), shared["scores"], strict=True)}
        for line in lines
    ]  # fmt: skip


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(WORDS, SCORES, st.just(256.5)), min_size=1))
def test_every_value_comes_back(values):
    rows = [{"name": a, "new/old": b, "bytes": c} for a, b, c in values]
    shared, (lines, again) = pack([rows, rows[:1]], exact=["bytes"])
    assert unpacked(shared, lines) == rows and unpacked(shared, again) == rows[:1]
    json.dumps([shared, lines], allow_nan=False)


def test_a_board_of_many_methods_is_small():
    # As on a board: some scores, as many blanks, and costs that come again for every metric.
    scores = {f"score {i}": 0.123456 if i % 2 else None for i in range(20)}
    row = {"kind": "method", "rank": None, "seeds": "0 1 2", "bytes": 5_914_624.0, **scores}
    rows = [row | {"method": f"method-{i % 40}", "score 1": i / 1e6} for i in range(400)]
    shared, lines = pack([rows], exact=["bytes"])
    plain = json.dumps([[*each.values()] for each in rows], separators=(",", ":"))
    assert len(json.dumps([shared, lines], separators=(",", ":"))) < 0.6 * len(plain)
