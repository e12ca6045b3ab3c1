"""Writing a details file, shortened until it is small enough.

What is too large is shortened in this order: coarser steps, cases other than those of the first
and the last generation, then queries (the same ones in every record, as far as each goes).
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import printable
from benchmark.records import details as files
from benchmark.records.details import Column, Details, QueryResults

_LEVELS = (255, 63, 15)
_HOPELESS = 1.5
"""What compresses quickly to so many times the limit is not tried slowly, which gains far less."""


def pack(details: Details, main: Sequence[str] = (), limit: int = files.LIMIT) -> bytes:
    """The file of details that have all queries, shortened to ``limit`` bytes.

    The ``main`` cases are kept when others are left out.

    Raises:
        ValueError: If it cannot be made that small.
    """
    # Numbered before any are left out: the same identity has one number in every record.
    numbered = {
        key: replace(result, identity=np.unique(result.identity, return_inverse=True)[1])
        for key, result in details.results.items()
    }
    for shortened, levels in _shorter(replace(details, results=numbered), main):
        plain = _plain(shortened, levels)
        if len(gzip.compress(plain, 1)) > _HOPELESS * limit:
            continue
        # A time in the file would make it another one in every run.
        packed = gzip.compress(plain, 9, mtime=0)
        if len(packed) <= limit:
            return packed
    raise ValueError(f"details: cannot be packed into {limit} bytes")


def _shorter(details: Details, main: Sequence[str]) -> Iterator[tuple[Details, int]]:
    for levels in _LEVELS:
        yield details, levels
    names = list(dict.fromkeys(case for case, _ in details.results))
    order = [n for n in main if n in names] + [n for n in names if n not in main]
    last = _LEVELS[-1]
    fewest = max(1, min(len(order), len(main)))
    for n in range(len(order) - 1, fewest - 1, -1):
        yield _without_cases(details, order[n:]), last
    least, share = _without_cases(details, order[fewest:]), 0.5
    while least.results and share > 1e-4:
        results = {key: _some(result, share) for key, result in least.results.items()}
        note = f"all but {share:.3g} of the queries"
        yield replace(least, results=results, left_out=(*least.left_out, note)), last
        share /= 2
    yield replace(details, results={}, left_out=(*details.left_out, "all queries")), last


def _without_cases(details: Details, cases: Sequence[str]) -> Details:
    if not cases:
        return details
    results = {key: result for key, result in details.results.items() if key[0] not in cases}
    note = f"queries of the cases {', '.join(cases)}"
    return replace(details, results=results, left_out=(*details.left_out, note))


def _some(result: QueryResults, share: float) -> QueryResults:
    rows = files.kept_rows(result.n_queries, max(1, int(share * result.n_queries)))
    # Draws are of all queries, of which the mean of some is no centre.
    return replace(
        result, values=result.values[rows], identity=result.identity[rows], rows=rows, draws=None
    )


def _plain(details: Details, levels: int) -> bytes:
    """The file before it is compressed."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    queries: dict[str, files.QuerySet] = {}
    names: dict[bytes, str] = {}
    columns: list[Column] = []
    for (case, metric), result in details.results.items():
        identity = result.identity.astype(np.uint32)
        mark = result.n_queries.to_bytes(8, "big") + identity.tobytes()
        name = names.setdefault(mark, f"queries{len(names)}")
        queries[name] = files.QuerySet(n_queries=result.n_queries, n=len(identity))
        arrays[name] = identity
        scale = max(1.0, float(result.values.max(initial=0.0)))
        hits = np.isin(result.values, (0.0, scale)).all()
        column = Column(
            case=case, metric=metric, array=f"answers{len(columns)}", queries=name,
            levels=1 if hits else levels, scale=scale,
        )  # fmt: skip
        if result.draws is not None:
            low, high = float(result.draws.min()), float(result.draws.max())
            name = f"draws{len(columns)}"
            column = column.model_copy(update={"draws": name, "low": low, "high": high})
            steps = (result.draws - low) / max(high - low, 1e-12)
            arrays[name] = np.rint(255 * steps).astype(np.uint8)
        arrays[column.array] = _quantised(result, column)
        columns.append(column)
    header: dict[str, Any] = {
        "schema": files.SCHEMA, "answers": tuple(columns), "queries": queries,
        "left_out": details.left_out,
    }  # fmt: skip
    if (picture := details.picture) is not None:
        header |= {"case": picture.case, "classes": tuple(map(printable, picture.classes))}
        arrays["label"] = picture.label.astype(np.uint8)
        arrays["xy"] = _fixed(np.concatenate([picture.old, picture.new], axis=1))
    if (order := details.ordering) is not None:
        header |= {"tau": order.tau, "n_items": order.n_items}
        arrays["order"] = _fixed(np.stack([order.predicted, order.true], axis=1))
    if (nearest := details.nearest) is not None:
        header["nearest"] = nearest.cases
        arrays["looked_at"] = nearest.queries.astype(np.uint32)
        arrays["nearest"] = nearest.items.astype(np.uint32)
        arrays["right"] = nearest.right.astype(np.uint8)
    plain = files.Header(**header).model_dump(mode="json", by_alias=True)
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
    return bytes(save(arrays, {"details": text}))


def _quantised(result: QueryResults, column: Column) -> NDArray[np.uint8]:
    if column.levels == 1:
        return np.packbits(result.values > 0)
    draws = np.random.default_rng([1, result.n_queries]).random(result.n_queries)[result.rows]
    return np.floor(result.values * (column.levels / column.scale) + draws).astype(np.uint8)


def _fixed(shares: NDArray[np.float64]) -> NDArray[np.uint16]:
    return np.rint(shares * 65535).astype(np.uint16)
