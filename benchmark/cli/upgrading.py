"""The verb ``upgrade``: a report on the user's own vectors."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from benchmark.errors import BenchError, located
from benchmark.metrics.cost_model import Assumptions
from benchmark.upgrade.read.names import INPUTS

app = typer.Typer()
Vectors = str | None

_QUESTIONS = {
    "old_model": "Does the old model still embed queries?",
    "sources": "Are the items kept, so that they can be embedded again?",
    "index": "May stored vectors be rewritten, or a new index be built?",
    "extra_runs": "May a second model run on a query?",
    "rescoring": "May items be embedded while a query waits?",
}
_DEFAULTS = {"rescoring": False}


@app.command(
    epilog="Examples: `bench upgrade --demo` · `bench upgrade --old-gallery old/ --new-gallery "
    "new.parquet --queries q_new.npy --old-queries q_old.npy --qrels qrels.tsv --items 40000000 "
    "--report upgrade.html`"
)
def upgrade(
    old_gallery: Annotated[
        Vectors, Option(help="Stored vectors of the old model, as `bench convert` takes them.")
    ] = None,
    new_gallery: Annotated[Vectors, Option(
        "--new-gallery", "--new-sample",
        help="Vectors by the new model: of all items, or of a sample of some thousands.",
    )] = None,
    queries: Annotated[Vectors, Option(help="Queries by the new model.")] = None,
    old_queries: Annotated[Vectors, Option(help="The same queries by the old model.")] = None,
    qrels: Annotated[
        Path | None, Option(help="Judgements in TREC's or BEIR's form; joined by ids.")
    ] = None,
    query_labels: Annotated[
        Path | None, Option(help="Classes of the queries: npy, or lines of id and label.")
    ] = None,
    gallery_labels: Annotated[Path | None, Option(help="Classes of the gallery.")] = None,
    query_texts: Annotated[
        Path | None, Option(help="Texts to show: BEIR's `queries.jsonl`, or lines of id and text.")
    ] = None,
    reads: Annotated[
        Path | None, Option(help="How often items are read, lines of id and number.")
    ] = None,
    id_column: Annotated[list[str] | None, Option(
        help="Column or array of ids, where it is not `id`; of one input `queries=qid`; `-` for "
        "row numbers. Repeatable."
    )] = None,
    vector_column: Annotated[list[str] | None, Option(
        help="Column or array of vectors; of one input `queries=emb`. Repeatable."
    )] = None,
    queries_are_items: Annotated[bool, Option(
        "--queries-are-items", help="The item of a query's id is the query itself: leave it out."
    )] = False,
    distance: Annotated[Literal["cosine", "l2"], Option(help="How vectors compare.")] = "cosine",
    items: Annotated[
        int | None, Option(min=1, help="Items of the deployment; else those of the gallery.")
    ] = None,
    throughput: Annotated[
        float, Option(help="Items the new model embeds in a second.")
    ] = Assumptions.throughput,
    price: Annotated[
        float, Option(help="Money for an hour of the machine that embeds them.")
    ] = Assumptions.price,
    old_model: Annotated[bool | None, Option(
        "--old-model/--no-old-model", show_default="asked, else yes", help=_QUESTIONS["old_model"]
    )] = None,
    sources: Annotated[bool | None, Option(
        "--sources/--no-sources", show_default="asked, else yes", help=_QUESTIONS["sources"]
    )] = None,
    index: Annotated[bool | None, Option(
        "--rewrite/--no-rewrite", show_default="asked, else yes", help=_QUESTIONS["index"]
    )] = None,
    extra_runs: Annotated[bool | None, Option(
        "--second-model/--no-second-model", show_default="asked, else yes",
        help=_QUESTIONS["extra_runs"],
    )] = None,
    rescoring: Annotated[bool | None, Option(
        "--rescoring/--no-rescoring", show_default="asked, else no", help=_QUESTIONS["rescoring"]
    )] = None,
    wanted: Annotated[
        float, Option(help="Share of the upgrade that a strategy must keep to be taken.")
    ] = 0.9,
    maps: Annotated[str, Option(
        help="`all`, `quick` (closed form), or methods, with commas: `linear,procrustes:query`."
    )] = "all",
    approximate: Annotated[Literal["hnsw", "ivf"] | None, Option(
        "--index", help="Judge strategies behind an approximate index of faiss, too.",
    )] = None,
    engine: Annotated[Literal["local", "ray"], Option(
        help="`ray`: the workers of a Ray cluster read parts of the gallery; same results."
    )] = "local",
    seed: Annotated[int, Option(min=0, help="Of everything random.")] = 0,
    report: Annotated[Path | None, Option(help="Page to write, one HTML file.")] = None,
    as_json: Annotated[Path | None, Option(
        "--json", help="File of all numbers to write; else beside the page."
    )] = None,
    save_map: Annotated[Path | None, Option(
        help="Folder for the recommended map, for `bench convert`; else beside the page."
    )] = None,
    demo: Annotated[
        bool, Option("--demo", help="Run on small vectors that come along, offline.")
    ] = False,
) -> None:  # fmt: skip
    """Say what to do about a new embedding model, from your own vectors."""
    from rich.console import Console

    from benchmark.cli.output import echo
    from benchmark.config.files import require_file_place
    from benchmark.report.renderers import terminal

    arguments: dict[str, Any] = {
        "old_gallery": old_gallery, "new_gallery": new_gallery, "queries": queries,
        "old_queries": old_queries, "qrels": qrels, "texts": query_texts, "reads": reads,
        "queries_are_items": queries_are_items, "distance": distance, "maps": maps,
        "labels": _labels(query_labels, gallery_labels),
        "id_column": _columns("--id-column", id_column),
        "vector_column": _columns("--vector-column", vector_column),
    }  # fmt: skip
    _check(arguments, demo)
    if report is not None:
        require_file_place(report, "--report")
        save_map = save_map or report.with_suffix(".map")
        as_json = as_json or _beside(report)
    if as_json is not None:
        require_file_place(as_json, "--json")
    _check_places(report, as_json, save_map, [] if demo else _read(arguments))
    flags = {
        "old_model": old_model, "sources": sources, "index": index, "extra_runs": extra_runs,
        "rescoring": rescoring,
    }  # fmt: skip
    constraints = _constraints(flags, ask=not demo and sys.stdin.isatty() and sys.stdout.isatty())
    if demo:
        from benchmark.upgrade.read.demo import demo_arguments

        arguments = demo_arguments()
    console = Console(stderr=True)
    with console.status("loading") as status:
        from benchmark.contract.conversion import require_place
        from benchmark.upgrade.run import upgrade as carry_out
        from benchmark.upgrade.show.tables import tables

        if save_map is not None:
            with located("--save-map"):
                require_place(save_map)
        result = carry_out(
            **arguments, items=items, throughput=throughput, price=price, **constraints,
            wanted=wanted, seed=seed, engine=engine, approximate=approximate, tell=status.update,
        )  # fmt: skip
    terminal.show(tables(result.document))  # first, as a disk may be full
    for line in result.document["inputs"]["told"]:
        if line.startswith("Warning: "):
            echo(f"bench: {line[0].lower()}{line[1:]}", err=True)
    _write(result, report, as_json, save_map)


def _write(result: Any, report: Path | None, as_json: Path | None, save_map: Path | None) -> None:
    """The files of a report, and where they are."""
    from benchmark.cli.output import echo

    if as_json is not None:
        result.save_json(as_json)
    if save_map is not None and result.conversion is not None:
        result.conversion.save(save_map)
    if report is not None:
        result.save_page(report)
    if save_map is not None and result.conversion is not None:
        use = f"bench convert {save_map} INPUT OUTPUT"
        if "query_view" in result.conversion.parts:
            use = f'benchmark.Conversion.load("{save_map}").view(queries)'
        echo(f"the map: {use}")
    elif save_map is not None:
        echo(f"no map is recommended: {save_map} is not written")
    if report is not None:
        echo(f"the page: {report}")


def _labels(queries: Path | None, gallery: Path | None) -> tuple[Path, Path] | None:
    if queries is None and gallery is None:
        return None
    if queries is None or gallery is None:
        missing = "--query-labels" if queries is None else "--gallery-labels"
        raise BenchError(f"upgrade: missing option '{missing}': labels are of both sides")
    return queries, gallery


def _columns(option: str, words: list[str] | None) -> dict[str, str]:
    """A column for each input: ``docid``, or of one input ``queries=qid``."""
    every: dict[str, str] = {}
    alone: dict[str, str] = {}
    for word in words or []:
        name, equals, column = word.partition("=")
        name = name.replace("-", "_")
        if equals and name in INPUTS:
            named, found = alone, {name: column}
        else:
            named, found = every, dict.fromkeys(INPUTS, word)
        if named.keys() & found.keys():
            raise BenchError(f"{option}: expected one column an input, got another one: '{word}'")
        named.update(found)
    return every | alone


def _check(arguments: dict[str, Any], demo: bool) -> None:
    needed = {
        "old_gallery": "--old-gallery",
        "new_gallery": "--new-gallery",
        "queries": "--queries",
    }
    given = [name for name in needed if arguments[name] is not None]
    if demo and given:
        raise BenchError(f"upgrade: --demo has vectors of its own, got {needed[given[0]]}")
    missing = [option for name, option in needed.items() if name not in given]
    if not demo and missing:
        raise BenchError(f"upgrade: missing option '{missing[0]}'; try bench upgrade --demo")


def _beside(report: Path) -> Path:
    """The file of numbers beside the page; BenchError if it holds something else than a report."""
    path = report.with_suffix(".json")
    if path == report or (path.is_file() and '"verdict"' not in path.read_text(errors="replace")):
        raise BenchError(
            f"--report: {path} is something else than a report's numbers: --json names another file"
        )
    return path


def _read(arguments: dict[str, Any]) -> list[Path]:
    """Every file that the call names."""
    from benchmark.upgrade.formats import files_read

    named = [arguments[name] for name in INPUTS if arguments[name] is not None]
    files = [arguments[name] for name in ("qrels", "texts", "reads")]
    return [
        *(path for name in named for path in files_read(name)),
        *(path for path in (*files, *(arguments["labels"] or ())) if path is not None),
    ]


def _check_places(
    report: Path | None, as_json: Path | None, save_map: Path | None, read: list[Path]
) -> None:
    """What can be told before hours of work: whether results have a place, which is nobody's."""
    from benchmark.config.files import writable
    from benchmark.config.places import require_apart

    places = (("--report", report), ("--json", as_json), ("--save-map", save_map))
    require_apart(places, read)
    for option, path in places:
        if path is not None:
            writable(path.resolve().parent, option)


def _constraints(flags: dict[str, bool | None], *, ask: bool) -> dict[str, Any]:
    """What the user can do: as flags say, else as is answered on a terminal, else as usual."""
    out = {}
    for name, value in flags.items():
        usual = _DEFAULTS.get(name, True)
        asked = value is None and ask
        out[name] = typer.confirm(_QUESTIONS[name], default=usual) if asked else value
        if out[name] is None:
            out[name] = usual
    return {name: bool(value) for name, value in out.items()}
