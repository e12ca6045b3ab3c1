"""Writing a details file, shortened until it is small enough.

What is too large is shortened in this order: coarser steps, cases other than those of the first
and the last generation, then queries (the same ones in every record, as far as each goes).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.records.details import (
    LIMIT,
    SCHEMA,
    Answers,
    Column,
    Details,
    Header,
    QuerySet,
    kept_rows,
)

_LEVELS = (255, 63, 15)


def pack(details: Details, main: Sequence[str] = (), limit: int = LIMIT) -> bytes:
    """The bytes of a details file, shortened to ``limit``.

    Args:
        details: What it is to hold; all queries of each case and metric.
        main: Cases that are kept when others are left out.
        limit: Bytes.

    Raises:
        ValueError: If it cannot be made that small.
    """
    # Numbered before any are left out: the same identity has one number in every record.
    numbered = {
        key: replace(found, identity=np.unique(found.identity, return_inverse=True)[1])
        for key, found in details.answers.items()
    }
    for shortened, levels in _shorter(replace(details, answers=numbered), main):
        made = _packed(shortened, levels)
        if len(made) <= limit:
            return made
    raise ValueError(f"details: cannot be packed into {limit} bytes")


def _shorter(details: Details, main: Sequence[str]) -> Iterator[tuple[Details, int]]:
    for levels in _LEVELS:
        yield details, levels
    names = list(dict.fromkeys(case for case, _ in details.answers))
    order = [n for n in main if n in names] + [n for n in names if n not in main]
    last = _LEVELS[-1]
    fewest = max(1, min(len(order), len(main)))
    for n in range(len(order) - 1, fewest - 1, -1):
        kept = set(order[:n])
        answers = {k: v for k, v in details.answers.items() if k[0] in kept}
        said = f"queries of the cases {', '.join(order[n:])}"
        yield replace(details, answers=answers, left_out=(*details.left_out, said)), last
    kept = set(order[:fewest])
    answers = {k: v for k, v in details.answers.items() if k[0] in kept}
    dropped = [f"queries of the cases {', '.join(order[fewest:])}"] if order[fewest:] else []
    share = 0.5
    while answers and share > 1e-4:
        fewer = {k: _some(v, share) for k, v in answers.items()}
        words = f"all but {share:.3g} of the queries"
        yield replace(details, answers=fewer, left_out=(*details.left_out, *dropped, words)), last
        share /= 2
    yield replace(details, answers={}, left_out=(*details.left_out, "all queries")), last


def _some(answers: Answers, share: float) -> Answers:
    rows = kept_rows(answers.n_queries, max(1, int(share * answers.n_queries)))
    return replace(answers, values=answers.values[rows], identity=answers.identity[rows], rows=rows)


def _packed(details: Details, levels: int) -> bytes:
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    queries: dict[str, QuerySet] = {}
    names: dict[bytes, str] = {}
    columns: list[Column] = []
    for (case, metric), found in details.answers.items():
        identity = found.identity.astype(np.uint32)
        mark = found.n_queries.to_bytes(8, "big") + identity.tobytes()
        name = names.setdefault(mark, f"queries{len(names)}")
        queries[name] = QuerySet(n_queries=found.n_queries, n=len(identity))
        arrays[name] = identity
        column_levels, scale = _scale(found, levels)
        column = Column(
            case=case, metric=metric, array=f"answers{len(columns)}", queries=name,
            levels=column_levels, scale=scale,
        )  # fmt: skip
        arrays[column.array] = _quantised(found, column)
        columns.append(column)
    header: dict[str, Any] = {
        "schema": SCHEMA, "answers": tuple(columns), "queries": queries,
        "left_out": details.left_out,
    }  # fmt: skip
    if details.picture is not None:
        shown = details.picture
        header |= {"case": shown.case, "classes": shown.classes}
        arrays["label"] = shown.label.astype(np.uint8)
        arrays["xy"] = _fixed(np.concatenate([shown.old, shown.new], axis=1))
    if details.ordering is not None:
        order = details.ordering
        header |= {"tau": order.tau, "n_items": order.n_items}
        arrays["order"] = _fixed(np.stack([order.predicted, order.true], axis=1))
    plain = Header(**header).model_dump(mode="json", by_alias=True)
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
    # A time in the file would make it another one in every run.
    return gzip.compress(save(arrays, {"details": text}), 9, mtime=0)


def _scale(found: Answers, levels: int) -> tuple[int, float]:
    scale = max(1.0, float(found.values.max(initial=0.0)))
    hits = bool(np.isin(found.values, (0.0, scale)).all())
    return (1 if hits else levels), scale


def _quantised(found: Answers, column: Column) -> NDArray[np.uint8]:
    if column.levels == 1:
        return np.packbits(found.values > 0)
    draws = np.random.default_rng([1, found.n_queries]).random(found.n_queries)[found.rows]
    return np.floor(found.values * (column.levels / column.scale) + draws).astype(np.uint8)


def _fixed(shares: NDArray[np.float64]) -> NDArray[np.uint16]:
    return np.rint(shares * 65535).astype(np.uint16)
