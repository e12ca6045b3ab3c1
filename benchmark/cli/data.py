"""``bench data``: the datasets, having them, and whether they are whole."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.output import echo, echo_entry, echo_json, progress_bar
from benchmark.errors import BenchError

if TYPE_CHECKING:
    from benchmark.config.declarations import Origin
    from benchmark.data.base import DatasetReader

app = typer.Typer(help="List, download and check datasets.", no_args_is_help=True)

Name = Annotated[str, Argument(help="A dataset, or a track on one.")]
Root = Annotated[Path | None, Option(help="Folder of the images.")]


@app.command("list", epilog="Example: `bench data list`")
def list_(as_json: options.AsJson = False) -> None:
    """List the datasets that come from files: their size, their terms, how to have them."""
    from benchmark.config import registry

    rows = []
    for name in registry.datasets():
        origin = _reader(name).origin
        if origin is not None:
            rows.append(
                {"id": name, "terms": origin.terms, "page": origin.page, **_had(name, origin)}
            )
    if as_json:
        echo_json(rows)
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        for label, text in ((row["id"], row["how"]), ("", f"licence: {row['terms']}")):
            echo_entry(f"{label:<{width}}  ", text)


@app.command(epilog="Examples: `bench data get cifar100 --out DIR` · `bench data get omniglot`")
def get(
    name: Name,
    out: Annotated[Path, Option(help="Folder to download to: a data root.")] = Path("data"),
    every: Annotated[
        bool, Option("--every-file", help="Also files that others hold all of.")
    ] = False,
) -> None:
    """Download what may be downloaded; a broken download goes on where it stopped."""
    from rich import progress
    from rich.console import Console

    from benchmark.data.downloads import fetch

    reader = _one_reader(name)
    origin = reader.origin
    if origin is None:
        raise BenchError(f"data get: {reader.name} has no files to download")
    if not origin.downloads:
        how = _had(reader.name, origin)["how"]
        raise BenchError(f"data get: {reader.name} may not be downloaded: {how}")
    echo(f"licence: {origin.terms}")
    console = Console(stderr=True)
    columns = (progress.TextColumn("{task.description}"), progress.DownloadColumn())
    bars = progress.Progress(
        *columns, progress.TransferSpeedColumn(), console=console, transient=True,
        disable=not console.is_terminal,
    )  # fmt: skip
    with bars:
        for wanted in origin.downloads:
            if wanted.part_of and not every:
                continue
            bar = bars.add_task(wanted.name, total=wanted.n_bytes)
            new = fetch(wanted, out, partial(_tell, bars, bar))
            echo(f"{out / wanted.name}: {'downloaded, ' if new else ''}as published")


@app.command(
    epilog="Examples: `bench data check cifar100 --data-root DIR` · "
    "`bench data check imagenet --data-root DIR`"
)
def check(name: Name, data_root: Root = None) -> None:
    """Compare a data root with what is published; exit code 2 if something is missing or other."""
    from benchmark.cli.records import print_tables
    from benchmark.data.census import take_census
    from benchmark.report.text_table import simple_table

    reader = _one_reader(name)
    origin = reader.origin
    hint = "" if origin is None else f"; {_had(reader.name, origin)['how']}"
    try:
        findings = take_census(reader, data_root)
    except BenchError as error:
        raise BenchError(f"{error}{hint}") from error
    lines = [
        (each.what, _text(each.found), _text(each.expected), "differs" if each.differs else "")
        for each in findings
    ]
    heads = ("", "found", "published", "")
    notes = () if origin is None else (f"Published: {origin.source}.", f"Licence: {origin.terms}.")
    table = simple_table(reader.name, "check", heads[:1], heads[1:], lines, notes=notes)
    print_tables([table])
    wrong = [f"{each.what} {_text(each.found)}, published {_text(each.expected)}"
             for each in findings if each.differs]  # fmt: skip
    if wrong:
        raise BenchError(
            f"data check: {data_root}: {len(wrong)} of {len(findings)} differ: "
            f"{'; '.join(wrong[:3])}{'; ...' if len(wrong) > 3 else ''}{hint}"
        )


@app.command(
    epilog="Example: `bench data resize imagenet --data-root DIR --out /fast/disk/imagenet`"
)
def resize(
    name: Name,
    out: Annotated[Path, Option(help="Folder of the copy: a data root.")],
    data_root: Root = None,
    side: Annotated[
        int, Option(min=32, max=2048, help="Pixels of the short side; smaller pictures stay.")
    ] = 256,
) -> None:
    """Keep a copy of photographs at the size that networks see; it goes on where it stopped."""
    from benchmark.data.resized_copy import resize_dataset

    with progress_bar("resizing") as progress:
        done = resize_dataset(_one_reader(name), data_root, out, side, progress)
    before, after = (f"{n / 1e6:,.1f} MB" for n in done.n_bytes)
    echo(f"{done.images:,} images, {done.new:,} of them written now: {before} to {after} in {out}")


def _reader(name: str) -> "DatasetReader":
    """A dataset by its name, or with the options of a track."""
    from benchmark.config import registry
    from benchmark.config.loading import load_track
    from benchmark.data.base import read_options

    known = registry.datasets()
    dataset = name.replace("-", "_")
    if name not in known and dataset not in known and name in registry.track_files():
        track = load_track(name)
        return read_options(track.dataset, track.data)
    return read_options(dataset if dataset in known else name)


def _one_reader(name: str) -> "DatasetReader":
    """A dataset that has a folder of its own; BenchError if it joins others."""
    reader = _reader(name)
    if reader.members:
        names = " and ".join(reader.members)
        raise BenchError(f"data: {name} joins {names}: name one of them, with its own folder")
    return reader


def _had(name: str, origin: "Origin") -> dict[str, str]:
    """The way to have a dataset, in words."""
    if not origin.downloads:
        return {"how": f"{origin.how} ({origin.page})"}
    size = sum(each.n_bytes for each in origin.downloads if not each.part_of)
    return {"how": f"bench data get {name} downloads {size / 1e6:.0f} MB from {origin.page}"}


def _tell(bars: Any, bar: Any, done: float) -> None:
    bars.update(bar, completed=done)


def _text(value: int | str | None) -> str:
    return f"{value:,}" if isinstance(value, int) else value or ""
