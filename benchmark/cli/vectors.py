"""Verbs on a user's own vectors."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.output import echo, progress_bar

app = typer.Typer()


@app.command(
    rich_help_panel=options.VECTORS,
    epilog="Examples: `bench convert conversion gallery.parquet converted.parquet` · "
    "`bench convert conversion sift.hdf5:train new.fvecs` · "
    "`bench convert conversion gallery.npy new.npy --side side.npy --dtype float16`",
)
def convert(
    conversion: Annotated[Path, Argument(help="Folder of a saved conversion.")],
    source: Annotated[str, Argument(
        metavar="INPUT", help="Stored vectors: `.npy`, `.npz`, `.parquet`, `.arrow` or a folder of "
        "them, `.hdf5`, `.fvecs`, `.bvecs`, `.safetensors`, `.jsonl`, `.csv`, files of databases; "
        "`FILE:NAME` is one array of several.",
    )],
    target: Annotated[Path, Argument(
        metavar="OUTPUT", help="File of the converted ones: `.npy`, `.npz`, `.parquet`, "
        "`.hdf5`, `.fvecs` or `.safetensors`.",
    )],
    side: Annotated[str | None, Option(
        help="Side-information, for a conversion that was fitted with it; joined by ids."
    )] = None,
    side_output: Annotated[
        Path | None, Option(help="File of the new side-information, for one that gives it.")
    ] = None,
    id_column: Annotated[str, Option(
        help="Column or array of ids, where it is not `id`; `-` for row numbers."
    )] = "",
    vector_column: Annotated[str, Option(help="Column or array of vectors.")] = "",
    dtype: Annotated[
        Literal["float32", "float16"] | None,
        Option(help="Of the numbers written; else float16 where the input's have two bytes."),
    ] = None,
    batch: Annotated[int, Option(min=1, max=2**20, help="Rows at a time.")] = 8192,
    force: Annotated[bool, Option("--force", help="Write over files that exist.")] = False,
    engine: options.Engine = "local",
) -> None:  # fmt: skip
    """Convert stored vectors from disk to disk, in the formats people have."""
    from benchmark.upgrade.formats.convert import convert as carry_out

    with progress_bar("converting") as progress:
        done = carry_out(
            conversion, source, target, side=side, side_target=side_output,
            id_column=id_column, vector_column=vector_column, dtype=dtype or "", batch=batch,
            force=force, engine=engine, progress=progress,
        )  # fmt: skip
    for line in done.told if done.joined is None else (*done.told, done.joined):
        echo(line)
    echo(done)
