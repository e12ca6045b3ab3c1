"""The verbs of ``bench`` for those who add a method or a result: parse, call, print."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from benchmark.cli.output import echo
from benchmark.errors import located

app = typer.Typer()


@app.command(
    epilog="Examples: `bench verify results/measured/open-class/glyphs/bct/seed-0.json` · "
    "`bench verify runs/measured/open-class/toy/bct/seed-0.json`"
)
def verify(
    record: Annotated[Path, Argument(help="A record's file.")],
    data_root: Annotated[
        Path | None, Option(help="Folder of the images, if the track needs one.")
    ] = None,
    store: Annotated[
        Path | None, Option(help="Keep what is trained, for the next record; else nothing is kept.")
    ] = None,
) -> None:
    """Train a record's work again and compare; one that holds gets a badge beside it."""
    from benchmark.cli.running import Progress
    from benchmark.harness.repeating import repeat
    from benchmark.records.files import read_record
    from benchmark.records.verified import write_verification

    first = read_record(record)
    with located(f"verify {record}"), Progress() as reporter:
        repetition = repeat(first, data_root=data_root, store=store, reporter=reporter)
        badge = repetition.verification()
    points, where = repetition.farthest()
    exact = "bit for bit the same" if repetition.bit_for_bit else f"{points:.4g} points apart"
    echo(exact if not points else f"{exact} at most: {where}")
    if badge is None:
        echo(f"not verified: {repetition.machines}; only the same kind of machine can tell")
        return
    echo(f"{badge.words}\n{write_verification(record, badge)}")
