"""One static page: a section for each protocol and track, with the numbers of the Table model.

Nothing here computes a score. The page needs no script and no other host, and the same records
give the same bytes: its date is the newest record's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.errors import BenchError
from benchmark.record import Record
from benchmark.report import backfilling, grid, notes, numbers, refills
from benchmark.report.table import Table, group, make_tables, render
from leaderboard.provenance import Origin, command, origins, versions

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Image:
    """A plot, by its address relative to the page."""

    source: str
    words: str


@dataclass(frozen=True)
class Refill:
    """Areas under the backfilling curves, and the curves."""

    title: str
    heads: tuple[str, ...]
    lines: tuple[backfilling.Line, ...]
    notes: tuple[str, ...]
    images: tuple[Image, ...]


@dataclass(frozen=True)
class Section:
    """What the page shows of one protocol on one track."""

    table: Table
    protocol: str
    question: str
    note: str
    changed: bool
    blocks: tuple[grid.Block, ...]
    images: dict[str, tuple[Image, ...]]
    refill: Refill | None
    curves: Image | None
    csv: str
    command: str
    origins: tuple[Origin, ...]
    versions: dict[str, str]


def build(
    records: Iterable[Record], folder: str | Path, plots: Sequence[Path] | None = None
) -> Path:
    """Write the page, a CSV for each table and, if none are given, the plots.

    Args:
        records: Any records.
        folder: Where ``index.html`` goes; made if missing.
        plots: Files of :func:`benchmark.report.plots.plot` for these records; by default they are
            drawn into ``folder/plots``.

    Returns:
        The path of ``index.html``.

    Raises:
        BenchError: If there is no record.
        OSError: If a file cannot be written.
    """
    records = list(records)
    if not records:
        raise BenchError("leaderboard: expected at least one record, got none")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if plots is None:
        from benchmark.report.plots import plot

        plots = plot(records, folder / "plots", formats="svg")
    groups = group(records)
    tables = make_tables(records)
    full = make_tables(records, metrics="all", cases="all")
    sections = []
    for members, table, whole in zip(groups, tables, full, strict=True):
        csv = f"{table.slug}.csv"
        refilled = backfilling.make_tables(members)
        _write(folder / csv, render(whole, "csv") + backfilling.render(refilled, "csv"))
        sections.append(_section(members, table, _addresses(plots, folder), csv))
    page = folder / "index.html"
    _write(page, _page(sections, records))
    return page


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _addresses(plots: Sequence[Path], folder: Path) -> dict[str, str]:
    """Name of a plot -> where the page finds it."""
    return {
        path.stem: Path(os.path.relpath(path, folder)).as_posix()
        for path in plots
        if path.suffix == ".svg"
    }


def _section(records: Sequence[Record], table: Table, plots: dict[str, str], csv: str) -> Section:
    first = records[0]
    blocks = tuple(grid.blocks(table))
    images = {}
    for block in blocks:
        kinds = {
            "tradeoff": f"{block.label}: cross-test against self-test of each method",
            "bars": f"{block.label}: cross-test and self-test of each method between the bounds",
        }
        names = {f"{table.slug}-{kind}-{block.metric}": words for kind, words in kinds.items()}
        images[block.metric] = tuple(
            Image(plots[name], words) for name, words in names.items() if name in plots
        )
    curves = plots.get(f"{table.slug}-curves")
    return Section(
        table=table,
        protocol=notes.protocol_title(first),
        question=notes.question(first),
        note=notes.track_note(first),
        changed=bool(first.changed),
        blocks=blocks,
        images=images,
        refill=_refill(records, table.slug, plots),
        curves=None if curves is None else Image(curves, "Training loss of each trained part"),
        csv=csv,
        command=command(records),
        origins=tuple(origins(records)),
        versions=versions(records),
    )


def _refill(records: Sequence[Record], slug: str, plots: dict[str, str]) -> Refill | None:
    made = backfilling.make_tables(records)
    if not made:
        return None
    heads, lines = backfilling.printed(made[0])
    names = {f"{slug}-backfilling-{key}": key for key in refills.metrics(records)}
    images = [
        Image(plots[name], f"{numbers.metric(key).label} while the gallery is refilled")
        for name, key in names.items()
        if name in plots
    ]
    below = tuple(note.replace("* is the best", "Bold is the best") for note in made[0].notes)
    return Refill(made[0].title, tuple(heads), tuple(lines), below, tuple(images))


def _page(sections: Sequence[Section], records: Sequence[Record]) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    newest = max(records, key=lambda r: (str(r.run.get("finished")), r.method, r.seed))
    return environment.get_template("page.html").render(
        sections=sections,
        style=(_TEMPLATES / "style.css").read_text(encoding="utf-8"),
        newest=origins([newest])[0],
        schema=newest.schema,
        n_records=len(records),
    )
