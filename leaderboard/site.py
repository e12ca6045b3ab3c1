"""The site: pages of boards, methods and records, downloads, and what they need, in one folder.

Nothing here computes a score. Pages open from disk and ask no host for anything; the same records
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
from benchmark.records.details import Details, details_path
from benchmark.records.details import find_details as own_details
from benchmark.records.record import Record
from benchmark.report import numbers
from benchmark.report.paired import PairedIntervals
from benchmark.report.ranks import MEAN_RULE, RULE
from leaderboard import overview, published, sections
from leaderboard.blocks import block, worded
from leaderboard.boards import Board, make_boards
from leaderboard.charts import board_data
from leaderboard.entries import download, entry_name, entry_page, find_details, href
from leaderboard.facts import Facts, method_facts
from leaderboard.families import make_families
from leaderboard.methods import method_page
from leaderboard.names import file_name
from leaderboard.olds import olds_data
from leaderboard.pages import Pages
from leaderboard.processes import MANY, spread
from leaderboard.provenance import command, origins, versions
from leaderboard.reading import Entry, Skipped, entries_of, read_folder, skip

_HERE = Path(__file__).parent
_FOLDERS = ("assets", "boards", "methods", "records", "published")
_MARK = ".compatbench-site"
_FAMILIES = ("compatible training", "transformation", "baseline", "control", "unknown")


def build_folder(root: str | Path, out: str | Path) -> tuple[Path, list[Skipped]]:
    """Write the site of the records below a folder; what is damaged is passed over.

    Args:
        root: Folder of records.
        out: Where ``index.html`` goes; made if missing.

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
        out: Where ``index.html`` goes; made if missing.
        root: Folder that their files lie below, for downloads and details.

    Returns:
        The path of ``index.html``.

    Raises:
        BenchError: If there is no record.
        OSError: If a file cannot be written.
    """
    entries = entries_of(records, None if root is None else Path(root))
    if not entries:
        raise BenchError("leaderboard: expected at least one record, got none")
    where = None if root is None else Path(root)
    with _no_collection():
        return _Site(entries, [], Path(out), where).write()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Looking for cycles among millions of values takes a third of the time and finds none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Site:
    """What all pages share."""

    def __init__(
        self,
        entries: Sequence[Entry],
        skipped: Sequence[Skipped],
        out: Path,
        root: Path | None,
    ) -> None:
        self.out = out
        self.root = root or Path()
        self.skipped = list(skipped)
        names = sorted({e.record.method for e in entries}, key=lambda m: m.partition(":"))
        self.facts: dict[str, Facts] = {name: method_facts(name) for name in names}
        by_record = {id(entry.record): entry for entry in entries}
        pairs = PairedIntervals(lambda record: find_details(by_record[id(record)]))
        self.boards = make_boards(entries, self.facts, pairs)
        self.families = make_families(self.boards)
        newest = overview.newest(entries, 1)[0].record
        self.entries = entries
        self._folders: set[Path] = set()
        self.published = published.read()
        self.pages = Pages({
            "n_records": len(entries), "schema": newest.schema_version,
            "newest": origins([newest])[0],
        })  # fmt: skip

    def write(self) -> Path:
        """Write everything; what an earlier site left behind goes."""
        _clear(self.out)
        self._copy_assets()
        self.skipped += self._write_records()
        self._page("index", "index.html", **self._index())
        self._page("methods", "methods.html", families=self._families())
        for family in self.families:
            self._page("family", f"boards/{family.slug}.html", family=family)
        papers = published.papers(self.published)
        self._page("published", "published.html", papers=papers)
        for paper in papers:
            address = f"published/{paper.file}.html"
            self._page("paper", address, paper=paper)
        self._page("submit", "submit.html", **self._protocols())
        self._page("skipped", "skipped.html", skipped=self.skipped)
        return self.out / "index.html"

    def _copy_assets(self) -> None:
        for source, target in (("assets", "assets"), ("vendor", "assets/vendor")):
            (self.out / target).mkdir(parents=True, exist_ok=True)
            for path in sorted((_HERE / source).iterdir()):
                shutil.copyfile(path, self.out / target / path.name)

    def _page(self, template: str, address: str, **values: Any) -> None:
        root = "../" * address.count("/")
        self._write(address, self.pages.render(template, root, **values))

    def _write(self, address: str, content: bytes) -> None:
        path = self.out / address
        if path.parent not in self._folders:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._folders.add(path.parent)
        path.write_bytes(content)

    def _index(self) -> dict[str, Any]:
        columns, standings, general = overview.matrix(self.boards)
        ways, lines = overview.advice(self.boards)
        chooser = overview.chooser_data(self.boards)
        single = [board for board in columns if not board.of_setting]
        shown = {b.slug for b in single} | {b.slug for f in self.families for _, b in f.boards}
        methods = {
            name: {"family": f.family, "needs": f.needs, "changes": f.changes}
            for name, f in self.facts.items()
        }
        routes = [{"id": i, "words": words} for i, words, _ in overview.ROUTES]
        return {
            "columns": columns, "families": self.families,
            "single": [(board, sections.words(board)) for board in single],
            "standings": standings, "general": general, "rules": RULE, "mean_rule": MEAN_RULE,
            "ways": ways, "advice": lines, "routes": overview.ROUTES, "chooser": chooser,
            "changed": [board for board in self.boards if board.slug not in shown],
            "newest": self._newest(), "n_skipped": len(self.skipped),
            "data": {"chooser": chooser, "routes": routes, "methods": methods},
        }  # fmt: skip

    def _protocols(self) -> dict[str, list[str]]:
        """Those whose ranks make the mean rank, and the others."""
        ranked = {board.first.protocol for board in self.boards if board.general}
        every = list(registry.protocol_files())
        return {
            "general": [p for p in every if p in ranked] or every[:1],
            "others": [p for p in every if p not in ranked],
        }

    def _newest(self) -> list[dict[str, Any]]:
        homes = {id(entry): board for board in self.boards for entry in board.entries}
        return [
            {
                "record": entry.record, "board": homes[id(entry)],
                "href": href(homes[id(entry)], entry),
                "finished": origins([entry.record])[0].finished,
            }
            for entry in overview.newest(self.entries)
        ]  # fmt: skip

    def _families(self) -> list[tuple[str, list[Facts]]]:
        found = {name: [f for f in self.facts.values() if f.family == name] for name in _FAMILIES}
        return [(name, members) for name, members in found.items() if members]

    def _write_records(self) -> list[Skipped]:
        """Boards, methods and records, whatever comes many times; many of them by processes.

        Returns:
            Details files that were passed over.
        """
        work: list[Callable[[], Skipped | None]] = [partial(self._board, b) for b in self.boards]
        work += [partial(self._method, facts) for facts in self.facts.values()]
        work += [partial(self._record, b, entry) for b in self.boards for entry in b.entries]
        self.pages.load("board", "method", "record")
        found = spread(lambda page: page(), work, enough=len(self.entries) >= MANY)
        return sorted(filter(None, found), key=lambda each: each.file)

    def _method(self, facts: Facts) -> None:
        page = method_page(facts, self.boards, frozenset(self.facts))
        self._page("method", f"methods/{file_name(facts.method)}.html", **page)

    def _board(self, board: Board) -> None:
        data = board_data(board, self.boards) | {"olds": olds_data(board)}
        rows = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
        text = json.dumps(rows, indent=1, allow_nan=False) + "\n"
        self._write(f"boards/{board.slug}.json", text.encode())
        self._write(f"boards/{board.slug}.csv", sections.csv_bytes(data["columns"], data["rows"]))
        self._page("board", f"boards/{board.slug}.html", **self._board_page(board, data))

    def _record(self, board: Board, entry: Entry) -> Skipped | None:
        """A record's page and files; what is wrong with its details."""
        details, wrong = self._details(entry)
        name = f"records/{board.slug}/{entry_name(entry)}"
        page = entry_page(entry, board, details, "" if wrong is None else wrong.reason)
        self._page("record", f"{name}.html", **page)
        self._write(f"{name}.json", download(entry))
        if details is not None and entry.path is not None:
            self._write(f"{name}.details.gz", details_path(entry.path).read_bytes())
        return wrong

    def _details(self, entry: Entry) -> tuple[Details | None, Skipped | None]:
        """What is drawn of a record's details."""
        if entry.path is None:
            return None, None
        try:
            return own_details(entry.record, entry.path, with_results=False), None
        except BenchError as error:
            return None, skip(error, self.root)

    def _board_page(self, board: Board, data: dict[str, Any]) -> dict[str, Any]:
        records = board.records
        links: dict[str, list[tuple[str, int]]] = {}
        for entry in board.entries:
            place = (href(board, entry), entry.record.seed)
            links.setdefault(entry.record.method, []).append(place)
        return {
            "board": board,
            "words": sections.words(board),
            "blocks": [block(board, key) for key in board.main],
            "bounds": sections.bounds(board),
            "siblings": self._siblings(board),
            "family": next((f for f in self.families if f.has(board)), None),
            "notes": worded(board, records),
            "refill": sections.refill(records),
            "steps": sections.steps(records),
            "sides": sections.side_tables(records),
            "published": published.beside(self.published, board),
            "command": command(records),
            "records": list(links.items()),
            "versions": list(versions(records).items()),
            "data": data,
        }

    def _siblings(self, board: Board) -> list[tuple[Board, str]]:
        found = [
            (other, numbers.number(other.bound("lower", board.metric)))
            for other in self.boards
            if other.first.protocol == board.first.protocol and other.unmodified
        ]
        return found if len(found) > 1 and board in [other for other, _ in found] else []


def _clear(out: Path) -> None:
    """Take away what an earlier site left, and nothing else.

    Raises:
        BenchError: If the folder has things of others in our places.
    """
    mine = (out / _MARK).exists()
    there = [name for name in _FOLDERS if (out / name).exists()]
    if there and not mine:
        raise BenchError(
            f"{out}: expected an empty folder or an earlier site, found the folder '{there[0]}'"
        )
    for name in there:
        shutil.rmtree(out / name)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).write_text("Made by bench leaderboard; the folders beside are its own.\n")
