"""The rows of a board as its page carries them: a third of the size of plain JSON."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]
_MILLION = 1_000_000
"""Scores have six decimals."""


def pack(parts: Sequence[Rows], exact: Container[str] = ()) -> tuple[dict[str, Any], list[Any]]:
    """Rows of the same columns as lines of whole numbers, for ``assets/kit.js``.

    A score stands in millionths, empty where there is none; anything else is a place in ``words``.

    Args:
        parts: Tables.
        exact: Columns whose numbers are no scores.

    Returns:
        ``columns``, ``scores`` (1 of a column of scores, else 0) and ``words``; then the lines of
        each table.

    Example:
        >>> pack([[{"method": "bct", "map": 0.5}, {"method": "bct", "map": None}]])
        ({'columns': ['method', 'map'], 'scores': [0, 1], 'words': ['bct']}, [['0|500000', '0|']])
    """
    columns = list(parts[0][0])
    scores = [
        column not in exact
        and all(row[column] is None or type(row[column]) is float for rows in parts for row in rows)
        for column in columns
    ]
    places: dict[tuple[type, Any], int] = {}

    def text(value: Any, is_score: bool) -> str:
        if not is_score:
            return str(places.setdefault((type(value), value), len(places)))
        return "" if value is None else str(round(_MILLION * value))

    lines = [["|".join(map(text, row.values(), scores)) for row in rows] for rows in parts]
    words = [value for _, value in places]
    return {"columns": columns, "scores": [int(s) for s in scores], "words": words}, lines
