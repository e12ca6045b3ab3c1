"""Columns of ids and vectors as options name them, of all inputs or of one."""

from collections.abc import Sequence
from difflib import get_close_matches

from benchmark.errors import BenchError, located, unknown
from benchmark.upgrade.read.request import VECTORS


def columns_of(option: str, words: list[str] | None, of: Sequence[str] = VECTORS) -> dict[str, str]:
    """A column for each input: ``docid``, or of one input ``queries=qid``."""
    every: dict[str, str] = {}
    alone: dict[str, str] = {}
    for word in words or []:
        name, equals, column = word.partition("=")
        name = name.replace("-", "_")
        named, found = every, dict.fromkeys(VECTORS, word)
        if equals and name not in VECTORS and get_close_matches(name, VECTORS):
            with located(option):
                raise unknown("input", name, VECTORS)
        if equals and name in VECTORS:
            if name not in of:
                its = " or ".join(of).replace("_", "-")
                raise BenchError(f"{option}: expected a column of {its}, got '{word:.80}'")
            named, found = alone, {name: column}
        if named.keys() & found.keys():
            raise BenchError(f"{option}: expected one column an input, got another one: '{word}'")
        named.update(found)
    return every | alone
