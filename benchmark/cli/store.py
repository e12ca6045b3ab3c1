"""``bench store``: what is stored, whether it is whole, and freeing it."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from benchmark.cli import options
from benchmark.cli.output import echo
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.harness.store import Entry, Store

app = typer.Typer(help="Show, check and free what runs have stored.", no_args_is_help=True)

_DAY = 24 * 60 * 60.0


@app.command(epilog="Example: `bench store status`")
def status(root: options.Store = None) -> None:
    """Show what is stored, by kind of stage."""
    store = _open(root)
    kinds: dict[str, list[Entry]] = defaultdict(list)
    for entry in store.entries():
        kinds[entry.kind if entry.finished else "unfinished"].append(entry)
    echo(store.root)
    for kind, entries in (
        *sorted(kinds.items()),
        ("all", [e for es in kinds.values() for e in es]),
    ):
        echo(f"{kind:<12} {len(entries):>6} stages {_size(entries):>10}")


@app.command(epilog="Example: `bench store verify --store /data/store`")
def verify(root: options.Store = None) -> None:
    """Check every stored file against its hash; exit code 2 if one is damaged."""
    store = _open(root)
    finished = [entry for entry in store.entries() if entry.finished]
    n_damaged = 0
    for entry in finished:
        damage = store.damage(entry.name)
        if damage is not None:
            n_damaged += 1
            echo(f"damaged {entry.name}: {damage}")
    line = f"{len(finished)} stages, {_size(finished)}: {n_damaged} damaged"
    if n_damaged:
        raise BenchError(f"{line}; bench store clean frees them, bench run computes them anew")
    echo(line)


@app.command(epilog="Examples: `bench store clean` · `bench store clean --older-than 90`")
def clean(
    root: options.Store = None,
    older_than: Annotated[float | None, Option(
        min=0, help="Also free stages that were written more than so many days ago."
    )] = None,
) -> None:  # fmt: skip
    """Free damaged stages and what killed runs left; what a run is writing stays."""
    gone = _open(root).clean(None if older_than is None else older_than * _DAY)
    for entry in gone:
        echo(f"freed {entry.name}{'' if entry.finished else ', unfinished'}")
    echo(f"{len(gone)} freed, {_size(gone)}")


def _open(root: Path | None) -> "Store":
    from benchmark.config.files import default_store
    from benchmark.harness.store import Store

    folder = root or default_store()
    if not folder.is_dir():
        raise BenchError(f"--store: no folder {folder}")
    return Store(folder)


def _size(entries: Iterable["Entry"]) -> str:
    return f"{sum(entry.n_bytes for entry in entries) / 1e6:.1f} MB"
