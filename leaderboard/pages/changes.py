"""Changes since the last release: frozen standings, their differences, and a feed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from benchmark.config.files import read_bytes, write_whole
from benchmark.config.reading import Model, build
from benchmark.errors import BenchError, printable
from leaderboard.rank.boards import RankedBoard, rounded

FOLDER = Path("results/releases")
_NAME = re.compile(r"[0-9]+(\.[0-9]+){0,3}([a-z0-9.-]{0,20})?")
_MOST_BYTES = 4 * 1024 * 1024
_MOVED = 0.01  # a share that moves by less is the same
_FED = 40
Text = Annotated[str, Field(max_length=300)]
Share = Annotated[float, Field(ge=-100, le=100)]


class FrozenStanding(Model):
    """A method on a board of a release."""

    rank: Annotated[int, Field(ge=1)] | None = None
    share: Share | None = None
    """Of the upgrade kept."""
    models: Annotated[int, Field(ge=0)] = 0
    """On how many pairs of models it was measured."""


class FrozenBoard(Model):
    """A board of a release."""

    title: Text
    ranked_by: Text
    methods: Mapping[Text, FrozenStanding]

    @property
    def in_order(self) -> list[tuple[str, FrozenStanding]]:
        """Methods by rank, the others behind them by what they keep."""
        last = len(self.methods) + 1
        return sorted(
            self.methods.items(),
            key=lambda item: (item[1].rank or last, -(item[1].share or 0), item[0]),
        )


class Release(Model):
    """Standings as they were when a release was made."""

    release: Text
    newest: Text
    """Date at which the newest of its records was finished."""
    records: Annotated[int, Field(ge=0)]
    boards: Mapping[Text, FrozenBoard]


@dataclass(frozen=True)
class Move:
    """One line of what moved."""

    slug: str
    title: str
    method: str
    words: str


def freeze(name: str, boards: Sequence[RankedBoard]) -> Release:
    """Standings of today's unchanged boards, newest versions; BenchError if the name is none."""
    if not _NAME.fullmatch(name):
        raise BenchError(f"--freeze: expected a version such as 0.1.0, got '{printable(name)}'")
    current = [board for board in boards if board.current]
    finished = [r.run.finished or "" for board in current for r in board.records]
    return Release(
        release=name,
        newest=max(finished, default=""),
        records=len(finished),
        boards={
            board.slug: FrozenBoard(
                title=board.scenario.title,
                ranked_by=board.standing.criterion.words,
                methods={
                    m: FrozenStanding(
                        rank=board.standing.place(m).rank, share=rounded(e.share.value),
                        models=e.models,
                    )
                    for m, e in board.standing.effects.items()
                },
            )
            for board in current
        },
    )  # fmt: skip


def write_release(release: Release, folder: Path) -> Path:
    """Write ``<name>.json``; BenchError if it is there, as a release is never changed."""
    path = folder / f"{release.release}.json"
    if path.exists():
        raise BenchError(f"{path}: this release is frozen already; take another version")
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, release_text(release))
    return path


def release_text(release: Release) -> str:
    """A release as a file."""
    text = json.dumps(release.model_dump(), indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n"


def read_releases(folder: Path) -> list[Release]:
    """Frozen releases, the newest version first; none without the folder, else a BenchError."""
    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            value = json.loads(read_bytes(path, _MOST_BYTES))
        except (ValueError, RecursionError) as error:
            raise BenchError(f"{path}: no JSON: {error}") from error
        release = build(Release, value, str(path))
        if release.release != path.stem:
            raise BenchError(f"{path}: release: expected '{path.stem}', got '{release.release}'")
        found.append(release)
    return sorted(found, key=lambda r: _version(r.release), reverse=True)


def _version(name: str) -> tuple[list[int], str]:
    numbers = re.match(r"[0-9.]*", name)
    head = numbers[0] if numbers else ""
    # 1.0 comes after 1.0rc1.
    return [int(part) for part in head.split(".") if part], name[len(head) :] or "~"


def moves(before: Release, after: Release) -> list[Move]:
    """Methods that are new, gone or stand elsewhere, board by board."""
    found = []
    for slug in sorted(before.boards.keys() | after.boards.keys()):
        old, new = before.boards.get(slug), after.boards.get(slug)
        if old is None or new is None:
            about = new or old
            if about is not None:
                words = "new board" if old is None else "no board any more"
                found.append(Move(slug if new else "", about.title, "", words))
            continue
        for method in sorted(old.methods.keys() | new.methods.keys()):
            words = ", ".join(_moved(old.methods.get(method), new.methods.get(method)))
            if words:
                found.append(Move(slug, new.title, method, words))
    return found


def _moved(old: FrozenStanding | None, new: FrozenStanding | None) -> Iterator[str]:
    if old is None or new is None:
        yield "new" if old is None else "gone"
        return
    if old.rank != new.rank:
        yield f"rank {old.rank or 'none'} to {new.rank or 'none'}"
    if old.models != new.models:
        yield f"{old.models} to {new.models} models"
    if old.share is not None and new.share is not None and abs(old.share - new.share) >= _MOVED:
        yield f"keeps {100 * old.share:z.0f} % to {100 * new.share:z.0f} %"


def feed(boards: Sequence[RankedBoard], releases: Sequence[Release]) -> dict[str, Any]:
    """Values of the Atom feed: releases, then boards by their newest record; links are relative."""
    current = {board.slug: board for board in boards if board.current}
    dates = {
        slug: max(record.run.finished or "" for record in board.records)
        for slug, board in current.items()
    }
    entries = [
        (f"release:{r.release}", f"Release {r.release}: {r.records} records", r.newest,
         f"releases/{r.release}.html")
        for r in releases
    ]  # fmt: skip
    for slug in sorted(current, key=lambda slug: (dates[slug], slug), reverse=True)[:_FED]:
        title = f"{current[slug].scenario.title}: {len(current[slug].stored)} records"
        entries.append((f"board:{slug}", title, dates[slug], f"boards/{slug}.html"))
    return {
        "updated": _date(max(dates.values(), default="")),
        "entries": [
            (f"urn:compatbench:{name}:{date}".replace(" ", ""), title, _date(date), href)
            for name, title, date, href in entries
        ],
    }


def _date(text: str) -> str:
    """A date as a feed must have it."""
    shape = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\+\d\d:\d\d|Z)"
    return text if re.fullmatch(shape, text) else "1970-01-01T00:00:00Z"
