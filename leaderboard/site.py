"""The site: pages of boards, methods and records, downloads, and what they need, in one folder.

Nothing here computes a score. Pages open from disk and load nothing from any host; the same records
give the same bytes, for the only dates are those of records.
"""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.errors import BenchError
from benchmark.records import details as records_details
from benchmark.records import published
from benchmark.records.details import Details, details_path
from benchmark.records.record import Record
from benchmark.report import notes, numbers
from benchmark.report.pairing import PairedIntervals
from benchmark.report.ranks import MEAN_RULE, RULE
from benchmark.report.renderers import csv
from benchmark.report.tables import backfilling, sequence, side_information
from benchmark.report.text_table import TextCell, TextTable, simple_table
from leaderboard import overview, tables
from leaderboard.boards import Board, make_boards
from leaderboard.cards import MethodInfo, method_info
from leaderboard.charts import board_data
from leaderboard.method_page import method_page, record_links
from leaderboard.names import file_name, method_href, record_address
from leaderboard.old_models import old_models_data
from leaderboard.pages import Pages
from leaderboard.processes import MANY, spread
from leaderboard.published import make_tables as published_tables
from leaderboard.reading import Entry, Skipped, read_folder, skip
from leaderboard.record_page import command, record_page, versions

_HERE = Path(__file__).parent
_FOLDERS = ("assets", "boards", "methods", "records", "published")
_MARK = ".compatbench-site"
_FAMILIES = ("compatible training", "transformation", "baseline", "control", "unknown")
_NEWEST = 12


def build_folder(root: str | Path, out: str | Path) -> tuple[Path, list[Skipped]]:
    """Write the site of the records below a folder; what is damaged is passed over.

    Args:
        root: Folder of records.
        out: Where ``index.html`` goes; created if missing.

    Returns:
        The path of ``index.html``, and what was passed over.

    Raises:
        BenchError: If there is no record.
        OSError: If a file cannot be written.
    """
    with _no_collection():
        entries, skipped = read_folder(Path(root))
        site = _Site(entries, skipped, Path(out), Path(root))
        page = site.write()
    return page, site.skipped


def build(records: Iterable[Record], out: str | Path, root: str | Path | None = None) -> Path:
    """Write the site of some records.

    Args:
        records: Any records.
        out: Where ``index.html`` goes; created if missing.
        root: Folder that their files lie below, for downloads and details.

    Returns:
        The path of ``index.html``.

    Raises:
        BenchError: If there is no record.
        OSError: If a file cannot be written.
    """
    entries = []
    for record in records:
        path = None if root is None else record.path(Path(root))
        entries.append(Entry(record, path if path is not None and path.is_file() else None))
    if not entries:
        raise BenchError("leaderboard: expected at least one record, got none")
    with _no_collection():
        return _Site(entries, [], Path(out), Path(root or ".")).write()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Looking for cycles among millions of values takes a third of the time and finds none."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class _Site:
    """What all pages share."""

    def __init__(
        self, entries: Sequence[Entry], skipped: Sequence[Skipped], out: Path, root: Path
    ) -> None:
        self.entries = entries
        self.skipped = list(skipped)
        self.out = out
        self.root = root
        methods = sorted({e.record.method for e in entries}, key=lambda m: m.partition(":"))
        self.info = {method: method_info(method) for method in methods}
        by_record = {id(entry.record): entry for entry in entries}
        pairs = PairedIntervals(lambda record: _read_details(by_record[id(record)]))
        self.boards = make_boards(entries, self.info, pairs)
        self.families = tables.make_families(self.boards)
        try:
            self.published = published.read_published()
        except BenchError:  # this installation has none
            self.published = published.Published({}, (), {}, {})
        self.newest = sorted(
            (entry.record for entry in entries),
            key=lambda record: (record.run.finished or "", record.method, record.seed),
            reverse=True,
        )[:_NEWEST]
        self.pages = Pages({"n_records": len(entries), "newest": self.newest[0]})

    def write(self) -> Path:
        """Write everything; what an earlier site left behind goes."""
        _clear(self.out)
        for folder in ("assets", "vendor"):
            target = self.out / "assets" / ("" if folder == "assets" else folder)
            shutil.copytree(_HERE / folder, target, copy_function=shutil.copyfile)
        self._write_records()
        self._page("index", "index.html", **self._index())
        self._page("methods", "methods.html", families=self._methods())
        for family in self.families:
            self._page("family", f"boards/{family.slug}.html", family=family)
        self._published()
        self._page("submit", "submit.html", **self._protocols())
        lines = [[TextCell(s.file, code=True), s.reason] for s in self.skipped] or [["None."]]
        table = simple_table("Skipped files", "", ("file", "reason"), (), lines)
        self._page("skipped", "skipped.html", table=table)
        return self.out / "index.html"

    def _page(self, template: str, address: str, **values: Any) -> None:
        root = "../" * address.count("/")
        self._write(address, self.pages.render(template, root, **values))

    def _write(self, address: str, content: bytes) -> None:
        path = self.out / address
        try:
            path.write_bytes(content)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def _write_records(self) -> None:
        """Boards, methods and records, whatever comes many times; many of them by processes."""
        work: list[Callable[[], Skipped | None]] = [partial(self._board, b) for b in self.boards]
        work += [partial(self._method, info) for info in self.info.values()]
        work += [partial(self._record, b, entry) for b in self.boards for entry in b.entries]
        self.pages.load("board", "method", "record")
        damaged = spread(lambda page: page(), work, enough=len(self.entries) >= MANY)
        self.skipped += sorted(filter(None, damaged), key=lambda each: each.file)

    def _index(self) -> dict[str, Any]:
        columns, matrix, general = overview.matrix(self.boards)
        best, best_settings = overview.advice(self.boards)
        chooser = overview.chooser_data(self.boards)
        single = [board for board in columns if not board.of_setting]
        of_families = [board for family in self.families for board in family.boards.values()]
        shown = {board.slug for board in (*single, *of_families)}
        routes = [{"id": name, "words": words} for name, (words, _) in overview.ROUTES.items()]
        methods = {method: info.filters for method, info in self.info.items()}
        return {
            "families": self.families, "matrix": matrix, "general": general,
            "single": [
                (board, notes.question(board.first), notes.track_note(board.first))
                for board in single
            ],
            "rules": RULE, "mean_rule": MEAN_RULE, "best": best, "best_settings": best_settings,
            "changed": [board for board in self.boards if board.slug not in shown],
            "newest": self._newest_table(), "n_skipped": len(self.skipped),
            "data": {"chooser": chooser, "routes": routes, "methods": methods},
        }  # fmt: skip

    def _newest_table(self) -> TextTable:
        homes = {id(record): board for board in self.boards for record in board.records}
        lines = []
        for record in self.newest:
            board = homes[id(record)]
            href = f"{record_address(board.slug, record)}.html"
            finished = record.run.finished or "unknown"
            name = TextCell(record.method, href=href)
            lines.append([name, board.title, str(record.seed), finished])
        heads = ("method", "protocol and track", "seed", "finished")
        return simple_table("Newest records", "", heads, (), lines)

    def _methods(self) -> list[TextTable]:
        """The methods of each family."""
        found = []
        for family in _FAMILIES:
            lines = [
                [
                    tables.method_cell(info.method),
                    info.summary or "not installed here",
                    ", ".join(info.needs) or "nothing but new data",
                    ", ".join(info.changes) or "nothing in the gallery",
                ]
                for info in self.info.values()
                if info.family == family
            ]
            heads = ("method", "idea", "needs", "changes")
            found += [simple_table(family.capitalize(), "", heads, (), lines)] if lines else []
        return found

    def _published(self) -> None:
        papers = []
        for name, paper in self.published.papers.items():
            own = [number for number in self.published.numbers if number.paper == name]
            address = f"published/{file_name(name)}.html"
            self._page("paper", address, paper=paper, tables=published_tables(own))
            papers.append((paper, len(own), address))
        self._page("published", "published.html", papers=papers)

    def _protocols(self) -> dict[str, list[str]]:
        """Those whose ranks make the mean rank, and the others."""
        ranked = {board.first.protocol for board in self.boards if board.general}
        every = list(registry.protocol_files())
        return {
            "general": [p for p in every if p in ranked] or every[:1],
            "others": [p for p in every if p not in ranked],
        }

    def _method(self, info: MethodInfo) -> None:
        page = method_page(info, self.boards, frozenset(self.info))
        self._page("method", method_href(info.method), **page)

    def _board(self, board: Board) -> None:
        data = board_data(board, self.boards) | {"old_models": old_models_data(board)}
        columns, rows = data["columns"], data["rows"]
        lines = [dict(zip(columns, row, strict=True)) for row in rows]
        text = json.dumps(lines, indent=1, allow_nan=False) + "\n"
        self._write(f"boards/{board.slug}.json", text.encode())
        values = tuple([_safe(value) for value in row] for row in rows)
        table = TextTable("", "", (), (), (), columns=tuple(columns), values=values)
        lines_text = csv.render([table])
        self._write(f"boards/{board.slug}.csv", lines_text.encode("utf-8", "replace"))
        self._page("board", f"boards/{board.slug}.html", **self._board_page(board, data))

    def _board_page(self, board: Board, data: dict[str, Any]) -> dict[str, Any]:
        records = board.records
        beside = published.beside(self.published, records)
        return {
            "board": board,
            "question": notes.question(board.first),
            "note": next(notes.track_lines(board.first), ""),
            "older": len(board.older) == len(board.info),
            "rankings": [tables.ranking(board, key) for key in board.metrics],
            "bounds": tables.bounds(board),
            "siblings": self._siblings(board),
            "family": next(
                (f for f in self.families if any(b is board for b in f.boards.values())), None
            ),
            "notes": tables.ranking_notes(board),
            "backfilling": [*map(tables.with_methods, backfilling.make_tables(records))],
            "sequence": sequence.make_tables(records),
            "sides": side_information.make_tables(records),
            "published": published_tables(beside, paper=True),
            "command": command(records),
            "records": [(method, record_links(board, method)) for method in board.info],
            "versions": versions(records),
            "data": data,
        }

    def _siblings(self, board: Board) -> list[tuple[Board, str]]:
        """Boards of the same protocol with other old models, and the quality of these."""
        same = [
            (other, numbers.number(other.bound("lower", board.metric)))
            for other in self.boards
            if other.first.protocol == board.first.protocol and other.comparable
        ]
        return same if len(same) > 1 and any(other is board for other, _ in same) else []

    def _record(self, board: Board, entry: Entry) -> Skipped | None:
        """A record's page and files; what is wrong with its details."""
        damaged = details = packed = None
        try:
            details = _read_details(entry, answers=False)
        except BenchError as error:
            damaged = skip(error, self.root)
        address = record_address(board.slug, entry.record)
        if entry.path is None:
            text = (json.dumps(entry.record.as_json(), indent=1) + "\n").encode()
        else:
            text = entry.path.read_bytes()
        self._write(f"{address}.json", text)
        if details is not None and entry.path is not None:
            packed = details_path(entry.path).read_bytes()
            self._write(f"{address}.details.gz", packed)
        self._page(
            "record",
            f"{address}.html",
            board=board,
            file=address.rpartition("/")[2],
            details_size=len(packed or b""),
            damaged=None if damaged is None else damaged.reason,
            **record_page(entry.record, details),
        )
        return damaged


def _read_details(entry: Entry, *, answers: bool = True) -> Details | None:
    """The details of a record; None where it has none.

    Raises:
        BenchError: If they are damaged.
    """
    if entry.path is None:
        return None
    return records_details.find_details(entry.record, entry.path, answers=answers)


def _safe(value: Any) -> Any:
    """A text that a spreadsheet does not take for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value


def _clear(out: Path) -> None:
    """Take away what an earlier site left, and nothing else.

    Raises:
        BenchError: If the folder has things of others in our places.
    """
    known = (out / _MARK).exists()
    there = [name for name in _FOLDERS if (out / name).exists()]
    if there and not known:
        raise BenchError(
            f"{out}: expected an empty folder or an earlier site, found the folder '{there[0]}'"
        )
    for name in there:
        shutil.rmtree(out / name)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).write_text("Written by bench leaderboard; the folders beside are its own.\n")
