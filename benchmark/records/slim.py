"""Writing a finished record small: its file, its details, and what its board has in common.

Of the results by query those of CMC@1 stay, or, without retrieval, all that fit;
``bench results details`` computes the others again. What the independent model of the seed has the
same lies once, in the base. Pictures stay of the first seed, which pages show.

A details file that is too large is shortened in this order: coarser steps, cases other than those
of the first and the last generation, then queries (the same ones in every record, as far as each
goes).
"""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.config.files import bytes_digest, plain_io_errors, read_bytes, write_whole
from benchmark.errors import BenchError, printable
from benchmark.records import details as files
from benchmark.records import layout
from benchmark.records.details import (
    Column,
    Details,
    Nearest,
    QueryResults,
    base_digest,
    details_base_path,
    main_cases,
    unpack_details,
)
from benchmark.records.details_files import details_path, queries_path
from benchmark.records.files import MOST_BYTES, STUDIES, write_record
from benchmark.records.limits import MOST_PACKED, ordered, parse_json
from benchmark.records.pictures import kept_nearest
from benchmark.records.record import Record

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 2**20}]
_LEVELS = (255, 63, 15)
_DRAWN = {"picture": "the picture", "ordering": "the order of items", "nearest": "nearest items"}
"""Drawings of pages -> words, in the order in which they are left out."""
_HOPELESS = 1.5
"""Times the limit of a quick compression above which none is tried slowly, which gains far less."""
LIMIT = 12 * 1024
"""Bytes of a details file, and of a base's."""
METRIC = "cmc_at_1"
_SLIM_LEVELS = (15,)
DRAWN_SEED = 0
"""The seed whose records keep what pages draw."""


@dataclass(frozen=True)
class Base:
    """A base's file, as writers look into it for what need not be written again."""

    name: str
    columns: Mapping[files.CaseMetric, tuple[Column, str, bytes]]  # with its queries, its array
    sets: Mapping[bytes, str]  # queries -> name of their set

    @classmethod
    def of(cls, packed: bytes) -> Base:
        """Look into a base's bytes."""
        header, arrays = files.read_arrays(Path("base"), packed)
        held = {name: bytes(each["data"]) for name, each in arrays.items()}
        columns = {
            (column.case, column.metric): (column, column.queries, held[str(column.array)])
            for column in header.columns
            if column.draws is None
        }
        sets = {_mark(each.n_queries, held[name]): name for name, each in header.queries.items()}
        return cls(files.base_digest(packed), columns, sets)


def _mark(n_queries: int, identities: bytes) -> bytes:
    return n_queries.to_bytes(8, "big") + identities


def pack(
    details: Details, main: Sequence[str] = (), limit: int = MOST_PACKED, *,
    levels: Sequence[int] = _LEVELS, base: Base | None = None, record: str | None = None,
    small: bool = False,
) -> bytes:  # fmt: skip
    """The file of some details, shortened to ``limit`` bytes, with all identities numbered.

    Args:
        details: What it holds.
        main: Cases that are kept when others are left out.
        limit: Bytes.
        levels: Numbers of steps that are tried, the finest first.
        base: What need not be written again.
        record: JSON of what the record's file leaves out; a ValueError if it alone is too large.
        small: With xz, which takes longer, instead of gzip.
    """
    # Numbered before any are left out: the same identity has one number in every record.
    numbered = {
        key: replace(result, identity=np.unique(result.identity, return_inverse=True)[1])
        if len(result.rows) == result.n_queries
        else result
        for key, result in details.results.items()
    }
    for shortened, steps in _shorter(replace(details, results=numbered), main, levels):
        plain = _plain(shortened, steps, base, record)
        if len(gzip.compress(plain, 1)) > _HOPELESS * limit:
            continue
        # A time in the file would make it another one in every run.
        packed = _xz(plain) if small else gzip.compress(plain, 9, mtime=0)
        if len(packed) <= limit:
            return packed
    raise ValueError(f"details: cannot be packed into {limit} bytes")


def _xz(plain: bytes) -> bytes:
    return lzma.compress(plain, check=lzma.CHECK_CRC32, filters=_FILTERS)


def _shorter(
    details: Details, main: Sequence[str], levels: Sequence[int]
) -> Iterator[tuple[Details, int]]:
    for steps in levels:
        yield details, steps
    names = list(dict.fromkeys(case for case, _ in details.results))
    order = [n for n in main if n in names] + [n for n in names if n not in main]
    last = levels[-1]
    fewest = max(1, min(len(order), len(main)))
    for n in range(len(order) - 1, fewest - 1, -1):
        yield _without_cases(details, order[n:]), last
    least, share = _without_cases(details, order[fewest:]), 0.5
    while least.results and share > 1e-4:
        results = {key: _some(result, share) for key, result in least.results.items()}
        note = f"all but {share:.3g} of the queries"
        yield replace(least, results=results, left_out=(*least.left_out, note)), last
        share /= 2
    bare = replace(details, results={}, left_out=(*details.left_out, "all queries"))
    yield bare, last
    for name, words in _DRAWN.items():
        if getattr(bare, name) is not None:
            without: dict[str, Any] = {name: None, "left_out": (*bare.left_out, words)}
            bare = replace(bare, **without)
            yield bare, last


def _without_cases(details: Details, cases: Sequence[str]) -> Details:
    if not cases:
        return details
    results = {key: result for key, result in details.results.items() if key[0] not in cases}
    note = f"queries of the cases {', '.join(cases)}"
    return replace(details, results=results, left_out=(*details.left_out, note))


def _some(result: QueryResults, share: float) -> QueryResults:
    n = min(len(result.rows), max(1, int(share * result.n_queries)))
    rows = files.kept_rows(result.n_queries, n)
    places = np.searchsorted(result.rows, rows)  # what is kept already has all of fewer
    # Draws are of all queries, of which the mean of some is no centre.
    return replace(
        result, values=result.values[places], identity=result.identity[places], rows=rows,
        draws=None,
    )  # fmt: skip


def _plain(details: Details, levels: int, base: Base | None, record: str | None) -> bytes:
    """The file before it is compressed."""
    from safetensors.numpy import save

    arrays, columns, queries = _answers(details, levels, base or Base("", {}, {}))
    header: dict[str, Any] = {
        "schema": files.SCHEMA, "base": base and base.name, "answers": tuple(columns),
        "queries": queries, "left_out": details.left_out,
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
    plain = files.DetailsHeader(**header).model_dump(
        mode="json", by_alias=True, exclude_defaults=True
    )
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
    more = {} if record is None else {"record": record}
    # safetensors writes memory as it lies, whatever the order of the axes in it.
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return ordered(save(arrays, {"details": text, **more}))


def _answers(
    details: Details, levels: int, known: Base
) -> tuple[dict[str, NDArray[Any]], list[Column], dict[str, files.QuerySet]]:
    """Arrays by name, what they are, and the sets of queries; of what the base has, names alone."""
    arrays: dict[str, NDArray[Any]] = {}
    columns: list[Column] = []
    queries: dict[str, files.QuerySet] = {}
    names: dict[bytes, str] = {}
    for (case, metric), result in details.results.items():
        identity = result.identity.astype(np.uint32)
        mark = _mark(result.n_queries, identity.tobytes())
        scale = max(1.0, float(result.values.max(initial=0.0)))
        hits = np.isin(result.values, (0.0, scale)).all()
        column = Column(
            case=case, metric=metric, array=f"answers{len(columns)}",
            queries=names.get(mark, f"queries{len(names)}"), levels=1 if hits else levels,
            scale=scale,
        )  # fmt: skip
        array = _quantised(result, column)
        if result.draws is None and _is_known(known, column, mark, array.tobytes()):
            columns.append(Column(case=case, metric=metric))
            continue
        name = names.setdefault(mark, column.queries)
        of_base = known.sets.get(mark)
        queries[name] = files.QuerySet(n_queries=result.n_queries, n=len(identity), base=of_base)
        if of_base is None:
            arrays[name] = identity
        if result.draws is not None:
            low, high = float(result.draws.min()), float(result.draws.max())
            drawn = f"draws{len(columns)}"
            column = column.model_copy(update={"draws": drawn, "low": low, "high": high})
            steps = (result.draws - low) / max(high - low, 1e-12)
            arrays[drawn] = np.rint(255 * steps).astype(np.uint8)
        arrays[str(column.array)] = array
        columns.append(column)
    return arrays, columns, queries


def _is_known(base: Base, column: Column, mark: bytes, array: bytes) -> bool:
    """Tell a column that the base has with the same values of the same queries."""
    found = base.columns.get((column.case, column.metric))
    if found is None:
        return False
    other, queries, held = found
    steps = (column.levels, column.scale) == (other.levels, other.scale)
    return steps and base.sets.get(mark) == queries and held == array


def _quantised(result: QueryResults, column: Column) -> NDArray[np.uint8]:
    if column.levels == 1:
        return np.packbits(result.values > 0)
    if result.step == column.scale / column.levels:  # in these very steps already
        return np.rint(result.values / result.step).astype(np.uint8)
    # What was rounded before is rounded by other draws: the same ones would add up.
    stream = [2 if result.step else 1, result.n_queries]
    draws = np.random.default_rng(stream).random(result.n_queries)[result.rows]
    return np.floor(result.values * (column.levels / column.scale) + draws).astype(np.uint8)


def _fixed(shares: NDArray[np.float64]) -> NDArray[np.uint16]:
    return np.rint(shares * 65535).astype(np.uint16)


def write_slim(
    path: Path, record: Record, base: Record, packed: bytes | None, of_base: bytes
) -> None:
    """Write a record with its details and bases, each whole or not at all.

    Args:
        path: Where the record belongs.
        record: A complete record, without a hash of its details.
        base: The record of the independent model of its seed.
        packed: All results by query as its evaluation wrote them; ``None`` where it has none.
        of_base: Those of the base.

    Raises:
        BenchError: If the results are damaged, or the disk is full.
    """
    cases = main_cases([*record.models])
    shared, (common, bounds) = layout.base_of(base.as_json()), _base(of_base, cases)
    _, kept = layout.parted(record.as_json(), shared)
    details = Details() if packed is None else unpack_details(path, packed)
    drawn = record.seed == DRAWN_SEED and STUDIES not in path.parts
    details = _with_drawings(details, bounds, drawn)
    text = layout.compact(kept)
    small = pack(
        with_main_metric(details), cases, LIMIT, levels=_SLIM_LEVELS, base=Base.of(common),
        record=text, small=True,
    )  # fmt: skip
    with plain_io_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(details_path(path), small)
        there = details_base_path(path, base_digest(common))
        if not there.is_file() or there.read_bytes() != common:
            write_whole(there, common)
    write_record(path, record.model_copy(update={"details": bytes_digest(small)}), shared)


def write_queries(path: Path, packed: bytes) -> Path:
    """Write all results by query beside the record at ``path``, whole or not; gives where."""
    beside = queries_path(path)
    with plain_io_errors(path.parent):
        write_whole(beside, packed)
    return beside


def with_main_metric(details: Details) -> Details:
    """Details without the results of metrics that a record goes without."""
    main = {key: result for key, result in details.results.items() if key[1] == METRIC}
    if len(main) in (0, len(details.results)):
        return details
    left_out = (*details.left_out, "results of other metrics")
    return replace(details, results=main, left_out=left_out)


def _with_drawings(details: Details, bounds: Nearest | None, drawn: bool) -> Details:
    """Details with what a page draws of them, if it does: of the chosen queries, ``bounds`` say."""
    if not drawn:
        return replace(details, picture=None, ordering=None, nearest=None)
    own = details.nearest
    if own is None or bounds is None or own.queries.tolist() != bounds.queries.tolist():
        return replace(details, nearest=None)
    return replace(details, nearest=kept_nearest(own, bounds))


@lru_cache(maxsize=2)
def _base(packed: bytes, cases: tuple[str, ...]) -> tuple[bytes, Nearest | None]:
    """The file of a base's results, and the nearest items that choose the queries looked at."""
    details = unpack_details(Path("base"), packed)
    results = replace(with_main_metric(details), picture=None, ordering=None, nearest=None)
    return pack(results, cases, LIMIT, levels=_SLIM_LEVELS, small=True), details.nearest


def bases(path: Path) -> list[Path]:
    """Files of its board that the record at ``path`` and its details file stand on.

    Of a damaged details file nothing is said here; BenchError if the record cannot be read.
    """
    value = parse_json(read_bytes(path, MOST_BYTES), path)
    name = value.get(layout.BASE) if isinstance(value, dict) else None
    found = [layout.base_path(path, name)] if isinstance(name, str) else []
    beside = details_path(path)
    if beside.is_file():
        with suppress(BenchError):
            of_details = files.named_base(beside, read_bytes(beside, MOST_PACKED))
            found += [] if of_details is None else [details_base_path(path, of_details)]
    return found


def remove_unused(outdated: Iterable[Path]) -> None:
    """Remove those of some bases on which no record of their board stands any more."""
    boards: dict[Path, set[Path]] = {}
    for base in outdated:
        boards.setdefault(base.parent, set()).add(base)
    for board, gone in boards.items():
        for record in board.glob("*/seed-*.json"):
            gone.difference_update(bases(record))
        for base in gone:
            base.unlink(missing_ok=True)


def check_base(path: Path) -> None:
    """Read a base of records or of details; BenchError if damaged, or not what its name says."""
    if path.suffix == ".json":
        layout.read_base(path)
    else:
        files.read_base(path)
