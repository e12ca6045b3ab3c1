"""The site: pages of boards, methods and records, downloads, and what they need, in one folder.

Nothing here computes a score. Pages open from disk and load nothing from any host; the same records
give the same bytes, for the only dates are those of records.
"""

import gc
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from operator import call
from pathlib import Path
from typing import Any

from benchmark.config import registry
from benchmark.config.files import read_bytes
from benchmark.config.grouping import grouped
from benchmark.config.places import require_outside
from benchmark.errors import AbsentError, BenchError
from benchmark.records import published
from benchmark.records.files import MOST_BYTES, StoredRecord
from benchmark.records.pictures import Pictures
from benchmark.records.record import Record
from benchmark.records.slim import bases
from benchmark.report.costs import effort
from benchmark.report.ranks import RULE
from benchmark.report.scenarios import kinds_words
from benchmark.report.text_table import TextCell, simple_table
from benchmark.studies.claims.tables import RULE as CLAIMS_RULE
from leaderboard.names import file_name, method_href, record_files, record_href, records_href
from leaderboard.pages import changes, front, tables, templates
from leaderboard.pages.board import board_page, downloads
from leaderboard.pages.claims import Told
from leaderboard.pages.evidence import (
    FIGURES,
    evidence_page,
    factors_page,
    has_evidence,
    pairs_table,
    papers_beside,
)
from leaderboard.pages.evidence import make_tables as published_tables
from leaderboard.pages.method import method_page
from leaderboard.pages.pairs import pairs_page, read_pairs, read_probed
from leaderboard.pages.record import QueriesLookedAt, record_page
from leaderboard.rank.boards import RankedBoard, make_boards, number_rows, unpaid
from leaderboard.rank.heatmap import heatmap
from leaderboard.read.methods import MethodInfo, board_bibtex, link_papers, method_info
from leaderboard.read.processes import MANY, working
from leaderboard.read.records import ShownRecord, Skipped, badge, read_folders, read_seeds, skip

_Path = str | Path
_HERE = Path(__file__).parent
_FOLDERS = ("assets", "boards", "claims", "methods", "records", "published", "releases")
_FIRST = "index.html"
_MARK = ".compatbench-site"
_TEMPLATES = ("base", "parts", "evidence", "board", "family", "method", "record")
_NEWEST = 12


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


@_no_collection()
def build_folder(
    root: _Path | Sequence[_Path], out: _Path, releases: _Path | None = None,
    drawn: Mapping[str, Pictures] | None = None,
) -> tuple[Path, list[Skipped]]:  # fmt: skip
    """Write the site of the records below a folder, or several, to another one.

    Args:
        root: Folders of records.
        out: Folder of the site.
        releases: Folder of frozen releases; by default ``results/releases``.
        drawn: Pictures of items beside those of ``pictures/`` there, by the names of their files.

    Returns:
        The path of ``index.html``, and what is damaged and so was passed over.

    Raises:
        BenchError: If one has no record, or lies in a folder that an earlier site's pages go from.
        OSError: If a file cannot be written.
    """
    roots = [Path(each) for each in ([root] if isinstance(root, str | Path) else root)]
    for each in roots:
        require_outside({"leaderboard": each}, [Path(out) / name for name in _FOLDERS])
    stored, skipped = read_folders(roots)
    site = _SitePages(stored, skipped, out, roots, releases, evidence=True, drawn=drawn)
    return site.write(), site.skipped


@_no_collection()
def build(records: Iterable[Record], out: _Path, root: _Path | None = None) -> Path:
    """Write the site of some records.

    Args:
        records: Any records.
        out: Folder of the site.
        root: Folder that their files lie below, for downloads and details.

    Returns:
        The path of ``index.html``.

    Raises:
        BenchError: If there is no record.
        OSError: If a file cannot be written.
    """
    stored = [StoredRecord(record, record.path(Path(root or out))) for record in records]
    if not stored:
        raise BenchError("leaderboard: expected at least one record, got none")
    return _SitePages(stored, [], out, [Path(root or ".")]).write()


class _SitePages:
    """The pages, and all that they share."""

    def __init__(
        self, stored: Sequence[StoredRecord], skipped: Sequence[Skipped], out: _Path,
        roots: Sequence[Path], releases: _Path | None = None, *, evidence: bool = False,
        drawn: Mapping[str, Pictures] | None = None,
    ) -> None:  # fmt: skip
        self.stored, self.skipped = stored, list(skipped)
        records = [each.record for each in stored]
        self.evidence = evidence and has_evidence(records)
        self.out, self.roots = Path(out), roots
        self.looked_at = QueriesLookedAt(roots, drawn)
        damaged = lambda error: self.skipped.append(skip(error, roots))  # noqa: E731
        self.pairs, self.probed = read_pairs(roots, damaged), read_probed(roots, damaged)
        self.pays = factors_page(roots, damaged)
        try:
            self.published = published.read_published()
        except AbsentError:  # this installation has none
            self.published = published.Published(papers={}, protocols=(), datasets={})
        self.info = link_papers(_method_infos(records), self.published.papers)
        self.told = Told()
        self.boards = make_boards(stored, self.info)
        self.releases = changes.read_releases(Path(releases or changes.FOLDER))
        self.newest = sorted(
            records,
            key=lambda record: (record.run.finished or "", record.method, record.seed),
            reverse=True,
        )[:_NEWEST]

    @cached_property
    def families(self) -> list[tables.SettingsFamily]:
        """The protocols with settings."""
        return tables.make_families(self.boards)

    def write(self) -> Path:
        """Write everything; what an earlier site left behind goes.

        What comes many times is made by processes: pages of records, which need no board, while
        this one makes the boards; then those of boards and methods, while it makes all others.
        """
        _clear(self.out)
        for folder, target in (("assets", "assets"), ("vendor", "assets/vendor")):
            shutil.copytree(_HERE / folder, self.out / target, copy_function=shutil.copyfile)
        for name in _TEMPLATES:
            templates.template(name)  # compiled before processes part that would each do so
        _ = self._about
        enough = len(self.stored) >= MANY
        of = [(board, method) for board in self.boards for method in board.by_seed]
        early: list[Callable[[], Any]] = [partial(self._records, *each) for each in of]
        # The evidence takes longest.
        with working(call, [self._evidence, *early], enough) as told_and_damaged:
            late = self._late()
            (self.told, of_studies), *damaged = told_and_damaged()
        found = dict.fromkeys([*of_studies, *chain.from_iterable(damaged)])
        self.skipped += sorted(found, key=lambda each: each.file)
        with working(call, late, enough) as written:
            self._few()
            written()
        return self.out / _FIRST

    def _late(self) -> list[Callable[[], Any]]:
        """Pages of boards, families and methods, the longest first."""
        boards = sorted(self.boards, key=lambda board: -len(board.stored))
        return [
            *(partial(self._board, board) for board in boards),
            *(partial(self._family, family) for family in self.families),
            *(partial(self._method, info) for info in self.info.values()),
        ]

    def _few(self) -> None:
        """Pages that come once, or once a paper."""
        about = {"n_skipped": len(self.skipped), "guide": self._guide(), "told": self.told}
        values = front.index(self.boards, self.info, real=bool(self.pairs))
        self._page("index", "index.html", **about, **values)
        scenarios = front.scenarios(self.boards, self.families, self.pairs)
        newest, skipped = front.newest(self.newest, self.boards), len(self.skipped)
        more = {"rules": RULE, "newest": newest, "n_skipped": skipped}
        self._page("boards", "boards.html", **scenarios, **more)
        self._page("methods", "methods.html", **front.method_tables(self.info.values(), self.told))
        self._page("compare", "compare.html", **front.compare(self.boards))
        self._published()
        if self.pairs:
            self._drawn("pairs", pairs_page(self.pairs, self.probed))
        if self.pays:
            self._drawn("pays", self.pays)
        self._page("submit", "submit.html", **self._protocols())
        self._changes()
        lines = [[TextCell(s.file, code=True), TextCell(s.reason)] for s in self.skipped]
        table = simple_table("Skipped files", "", ("file", "reason"), (), lines or [["None."]])
        self._page("skipped", "skipped.html", table=table)

    def _evidence(self) -> tuple[Told, list[Skipped]]:
        """The pages of evidence, if any; what other pages tell of it, and what is damaged."""
        if not self.evidence:
            return self.told, []
        page = evidence_page(self.stored, self.published, self.roots)
        self._drawn("evidence", page | {"unpaid": unpaid(self.boards)})
        for address, values in page["claims_pages"].items():
            name = values["paper"].id
            numbers = f"published/{file_name(name)}.html" if name in self.published.papers else ""
            self._page("claims", address, published=numbers, rule=CLAIMS_RULE, **values)
        return page["told"], page["skipped"]

    @cached_property
    def _about(self) -> dict[str, Any]:
        """Values of all records for every page."""
        return {
            "n_records": len(self.stored), "newest": self.newest[0],
            "kinds": kinds_words(board.scenario for board in self.boards),
            "both_networks": len({
                any(m.frozen for m in s.record.models.values()) for s in self.stored
            }) == 2,
            "evidence": self.evidence, "pairs": bool(self.pairs), "pays": bool(self.pays),
        }  # fmt: skip

    def _page(self, template: str, address: str, **values: Any) -> None:
        root = "../" * address.count("/")
        page = templates.render(template, site=self._about, root=root, **values)
        # Lone surrogates have no bytes in UTF-8.
        self._write(address, page.encode("utf-8", "replace"))

    def _write(self, address: str, content: bytes) -> None:
        path = self.out / address
        if path.parent == self.out:  # the only folder that is not our own: a file may be a link
            path.unlink(missing_ok=True)
        try:
            path.write_bytes(content)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError:
            path.unlink(missing_ok=True)  # half a page is none
            raise

    def _guide(self) -> str:
        """Pages of documents; the address of the guide to own vectors, empty where it is not."""
        guide = _HERE.parent / "docs" / "own-vectors.md"
        for file in filter(Path.is_file, (_HERE / "vendor" / "libraries.md", guide)):
            text = file.read_text("utf-8")
            title = text.partition("\n")[0].removeprefix("# ")
            values = {"title": title, "text": templates.from_markdown(text)}
            self._page("guide", file.with_suffix(".html").name, **values)
        return guide.with_suffix(".html").name if guide.is_file() else ""

    def _published(self) -> None:
        papers = []
        found = papers_beside(self.published, self.boards)
        for name, paper in self.published.papers.items():
            own = [number for number in self.published.numbers if number.paper == name]
            address = f"published/{file_name(name)}.html"
            mine = [each for each in found if each.found.paper == name]
            claims = self.told.page(name)
            about = {"paper": paper, "agreements": mine, "claims": claims}
            self._page("paper", address, tables=published_tables(own), **about)
            papers.append((paper, len(own), address, claims))
        counts = pairs_table(found) if found else None
        self._page("published", "published.html", papers=papers, agreements=found, counts=counts)

    def _drawn(self, name: str, page: Mapping[str, Any]) -> None:
        """A page with plots, ``figures`` by the name of their file."""
        for file, drawn in page["figures"].items():
            self._write(f"{FIGURES}/{file}", drawn)
        self._page(name, f"{name}.html", folder=FIGURES, **page)

    def _protocols(self) -> dict[str, Any]:
        """Protocols that any method can take part in, the others, and what running them takes."""
        ranked = {board.first.protocol: board for board in self.boards if board.general}
        every = list(registry.protocol_files())
        return {
            "general": [p for p in every if p in ranked] or every[:1],
            "others": [p for p in every if p not in ranked],
            "effort": effort(board.records for board in ranked.values()),
        }

    def _changes(self) -> None:
        """Changes since the last release, the releases themselves, the feed, and citations."""
        now = changes.freeze("0", self.boards)
        last = self.releases[0] if self.releases else None
        self._page(
            "changes", "changes.html", last=last, releases=self.releases,
            moves=changes.moves(last, now) if last else [], bibtex=board_bibtex(self.newest[0]),
            n_boards=len(now.boards),
        )  # fmt: skip
        today = {board.slug for board in self.boards}
        for release in self.releases:
            self._page("release", f"releases/{release.release}.html", release=release, today=today)
            text = changes.release_text(release)
            self._write(f"releases/{release.release}.json", text.encode("utf-8", "replace"))
        self._page("feed.xml", "feed.xml", **changes.feed(self.boards, self.releases))

    def _family(self, family: tables.SettingsFamily) -> None:
        heads = {board.slug: title for title, board in family.boards.items()}
        heat = heatmap([*family.boards.values()], "../", heads=heads)
        self._page("family", f"boards/{family.slug}.html", family=family, heat=heat)

    def _method(self, info: MethodInfo) -> None:
        page = method_page(info, self.boards, self.info) | {"told": self.told}
        self._page("method", method_href(info.method), **page)

    def _board(self, board: RankedBoard) -> None:
        rows = number_rows(board)
        for ending, content in downloads(board, rows).items():
            self._write(f"boards/{board.slug}.{ending}", content)
        page = board_page(board, rows, self.boards, self.families, self.published)
        badges = ((badge(stored), stored.record) for stored in board.stored)
        told = grouped((found.words, record) for found, record in badges if found is not None)
        page["verified"] = {
            words: grouped((r.method, (r.seed, record_href(board.slug, r))) for r in records)
            for words, records in told.items()
        }
        self._page("board", f"boards/{board.slug}.html", **page)

    def _records(self, board: RankedBoard, method: str) -> Sequence[Skipped]:
        """The page of a method's records on a board, and their files; what is damaged."""
        found = read_seeds(board.by_seed[method].values(), self.roots)
        for seed in found.seeds:
            self._files(board, seed)
        values = record_page(found)
        nearest = None if found.details is None else found.details.nearest
        looked = self.looked_at.page(nearest, found.drawn, board.by_seed.get("independent", {}))
        address = records_href(board.slug, method)
        self._page("record", address, board=board, queries=looked, **values)
        return [*found.skipped, *(skip(error, self.roots) for error in self.looked_at.damaged)]

    def _files(self, board: RankedBoard, seed: ShownRecord) -> None:
        """A record, its details and bases, as they are; what is damaged is kept to be told."""
        address, path = record_files(board.slug, seed.record), seed.stored.path
        there = path.is_file()
        anew = "" if there else json.dumps(seed.record.as_json(), indent=1) + "\n"
        self._write(f"{address}.json", path.read_bytes() if there else anew.encode())
        if seed.packed:
            self._write(f"{address}.details.xz", seed.packed)
        for base in bases(path) if there else []:
            if not (self.out / "records" / base.name).exists():
                try:
                    self._write(f"records/{base.name}", read_bytes(base, MOST_BYTES))
                except BenchError as error:
                    self.looked_at.damaged.append(error)


def freeze(root: _Path | Sequence[_Path], name: str, folder: Path | None = None) -> Path:
    """Write the standings of the records below a folder, or several, as a release.

    Raises:
        BenchError: If one has no record, or the release is there.
        OSError: If the file cannot be written.
    """
    roots = [Path(each) for each in ([root] if isinstance(root, str | Path) else root)]
    stored, _ = read_folders(roots)
    info = _method_infos([each.record for each in stored])
    release = changes.freeze(name, make_boards(stored, info))
    return changes.write_release(release, folder or changes.FOLDER)


def _method_infos(records: Iterable[Record]) -> dict[str, MethodInfo]:
    methods = sorted({record.method for record in records}, key=lambda m: m.partition(":"))
    return {method: method_info(method) for method in methods}


def _clear(out: Path) -> None:
    """Take away what an earlier site left; where others have things in our places, an error."""
    there = [name for name in (*_FOLDERS, _FIRST) if (out / name).exists()]
    if there and not (out / _MARK).exists():
        raise BenchError(f"{out}: expected an empty folder or an earlier site, found '{there[0]}'")
    for name in there:
        if name != _FIRST:
            shutil.rmtree(out / name)
    out.mkdir(parents=True, exist_ok=True)
    (out / _MARK).write_text("Written by bench leaderboard; the folders beside are its own.\n")
