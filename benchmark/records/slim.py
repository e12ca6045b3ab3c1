"""Writing a finished record small: its file, its details, and what its board has in common.

Of the results by query those of CMC@1 stay, or, without retrieval, all that fit;
``bench results details`` computes the others again. What the independent model of the seed has the
same lies once, in the base. Pictures stay of the first seed, which pages show.
"""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from benchmark.config.files import bytes_digest, plain_io_errors, read_bytes, write_whole
from benchmark.errors import BenchError
from benchmark.records import details as files
from benchmark.records import layout
from benchmark.records.details import (
    Details,
    Nearest,
    base_digest,
    details_base_path,
    main_cases,
    unpack_details,
)
from benchmark.records.details_files import details_path, queries_path
from benchmark.records.details_writer import Base, pack
from benchmark.records.files import MOST_BYTES, STUDIES, write_record
from benchmark.records.limits import parse_json
from benchmark.records.looked_at import kept_nearest
from benchmark.records.packed import MOST_PACKED
from benchmark.records.record import Record

LIMIT = 12 * 1024
"""Bytes of a details file, and of a base's."""
METRIC = "cmc_at_1"
_LEVELS = (15,)
DRAWN_SEED = 0
"""The seed whose records keep what pages draw."""


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
        with_main_metric(details), cases, LIMIT, levels=_LEVELS, base=Base.of(common),
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
    return pack(results, cases, LIMIT, levels=_LEVELS, small=True), details.nearest


def bases(path: Path) -> list[Path]:
    """Files of its board that the record at ``path`` and its details file stand on.

    Of a damaged details file nothing is said here.

    Raises:
        BenchError: If the record cannot be read.
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


def check_base(path: Path) -> None:
    """Read a base, of records or of their details files.

    Raises:
        BenchError: If it is damaged, or not what its name says.
    """
    if path.suffix == ".json":
        layout.read_base(path)
    else:
        files.read_base(path)
