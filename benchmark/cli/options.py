"""Options that several verbs share."""

from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

# Groups of verbs in ``bench --help``, and in docs/commands.md.
MEASURE = "Measure methods"
VECTORS = "Your own vectors"
LOOK_UP = "Look up"
ADD = "Add a method"
MAINTAIN = "Maintain"
PANELS = (MEASURE, VECTORS, ADD, LOOK_UP, MAINTAIN)

Form = Annotated[
    Literal["terminal", "csv", "markdown", "latex"],
    Option("--format", "-f", help="How to write it."),
]
Runs = Annotated[
    list[Path] | None,
    Argument(help="Folders of records, or single ones; by default `runs`.", metavar="RUNS"),
]


def _words(names: str, flag: str, *short: str) -> object:
    return Option(flag, *short, help=f"{names}, with commas; else all.")


Methods = Annotated[str, _words("Methods", "--methods", "-m")]
Protocols = Annotated[str, _words("Protocols", "--protocol", "-p")]
Tracks = Annotated[str, _words("Tracks", "--track", "-t")]
Datasets = Annotated[str, _words("Datasets", "--dataset")]
Papers = Annotated[str, _words("Papers", "--paper")]
PaperMetrics = Annotated[str, _words("Metrics", "--metrics")]
Seeds = Annotated[str, Option("--seeds", help="Seeds: `0`, `0,1,2` or `0-4`; else all.")]
Metrics = Annotated[
    str,
    Option(
        "--metrics", help="Metrics, with commas, or `all`; else the main ones. `avg` is MixBCT's."
    ),
]
Cases = Annotated[
    str,
    Option(
        "--cases",
        help="Cases, with commas, or `all`; else the main ones. `A - B` is their difference.",
    ),
]
_BY_QUERY = "with commas, or `all` with results by query; else the main ones."
QueryMetrics = Annotated[str, Option("--metrics", help=f"Metrics, {_BY_QUERY}")]
QueryCases = Annotated[str, Option("--cases", help=f"Cases, {_BY_QUERY}")]
Published = Annotated[
    str | None,
    Option(
        "--published",
        help="Folder of published models, which are taken instead of trained; else "
        "`results/models` of the checkout. `none` trains all.",
        show_default=False,
    ),
]
OwnTracks = Annotated[
    str, Option("--track", "-t", help="YAML files of tracks of your own, with commas.")
]
OwnProtocols = Annotated[
    str, Option("--protocol", "-p", help="YAML files of protocols of your own, with commas.")
]
Store = Annotated[
    Path | None, Option("--store", help="Folder of stage outputs; else the user's cache.")
]
Engine = Annotated[
    Literal["local", "ray"], Option("--engine", help="`local`, or `ray` for a cluster.")
]
Processes = Annotated[int, Option(
    min=1, max=1024, help="Stages at a time, each in a process with its share of the cores."
)]  # fmt: skip
PlotsAndCsv = Annotated[
    Path | None, Option("--out", help="Also write plots and CSV into a folder.")
]
AsJson = Annotated[bool, Option("--json", help="For programs.")]
Protocol = Annotated[
    str,
    Option(
        "--protocol",
        "-p",
        help="A protocol, one of its settings (`arch-change:deeper`), or the path of a YAML file.",
    ),
]


def split(text: str) -> list[str]:
    """The words of an option, which commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def track_roots(pairs: list[str] | None) -> dict[str, Path]:
    """Folders of images by track, as `omniglot=DIR` says them; BenchError on anything else."""
    from benchmark.config.data_roots import existing
    from benchmark.config.reading import named_values
    from benchmark.config.registry import track_files
    from benchmark.errors import BenchError, unknown

    found = named_values("--data-root", "TRACK=DIR", pairs or [])
    for track, folder in found.items():
        if not folder:
            raise BenchError(f"--data-root: expected TRACK=DIR, got '{track}='")
        if track not in track_files():
            raise unknown("track", track, track_files())
    return {track: existing(Path(folder)) for track, folder in found.items()}
