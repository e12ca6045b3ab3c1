"""The verb ``upgrade``: a report on the user's own vectors."""

import itertools
import re
import sys
import time
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import asdict, fields
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from rich.markup import escape
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.vector_columns import columns_of
from benchmark.config.places import real
from benchmark.errors import BenchError, located
from benchmark.upgrade.decide.gate import Condition
from benchmark.upgrade.read.request import (
    CONSTRAINTS,
    INPUTS,
    VECTORS,
    Constraints,
    Help,
    Interim,
    UpgradeRequest,
)

app = typer.Typer()
_OF_VECTORS = frozenset({
    *INPUTS, "models", "pairs_new", "pairs_old", "qrels", "query_labels", "gallery_labels",
    "id_column", "vector_column",
})  # fmt: skip
"""Parameters that say where vectors and their relevance are."""
_LONGEST = 40  # letters of a new model's name, which heads columns


def _parameter(name: str, help_: Help, default: Any) -> Parameter:
    option = Option(*help_.names, help=help_.text, **help_.more)
    kind = Annotated[help_.cli, option]  # type: ignore[name-defined]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _parameters() -> list[Parameter]:
    """Options of the request, by its fields; of the demo; and of the files that are written."""
    hints, found = get_type_hints(UpgradeRequest, include_extras=True), []
    for each in fields(UpgradeRequest):
        (help_,) = hints[each.name].__metadata__
        if help_.cli is not None:
            default = None if NoneType in get_args(help_.cli) else each.default
            found.append(_parameter(each.name, help_, default))
        if each.name == "labels":
            queries = "Classes of the queries: npy, or lines of id and label."
            for name, text in (("query", queries), ("gallery", "Classes of the gallery.")):
                found.append(_parameter(f"{name}_labels", Help(text, Path | None), None))
    places = {
        "report": Help("Page to write, one HTML file.", Path | None),
        "as_json": Help("File of all numbers to write; else beside the page.", Path | None,
                        ("--json",)),
        "save_map": Help("Folder for the recommended map, for `bench convert`; else beside the "
                         "page.", Path | None),
    }  # fmt: skip
    found += [_parameter(name, help_, None) for name, help_ in places.items()]
    words = Annotated[list[str] | None, Argument(
        metavar="[doctor OLD [NEW]]", show_default=False,
        help="`doctor` looks at vectors, or at those of the same items by two models, and says "
        "what is odd about them.",
    )]  # fmt: skip
    found.append(Parameter("words", Parameter.KEYWORD_ONLY, default=None, annotation=words))
    fail = Help(
        "End with exit code 3 if the report says so: `share<0.9`, `upgrade<0.02`, "
        "`linear:query.score<0.4`, `decided<1`. Without a name a figure is that of the strategy "
        "that is recommended, the upgrade that of embedding again. Shares and scores are 0 to 1: "
        "2 points are 0.02. Repeatable.", list[str] | None,
    )  # fmt: skip
    found.append(_parameter("fail_if", fail, None))
    every = Help("Print all strategies and tables.", bool, ("--all",))
    found.append(_parameter("every", every, False))
    demo = Help("Run on small vectors that come along, offline.", bool, ("--demo",))
    like = Help("Show measured upgrades of real models like `minilm-l6:bge-small`, too; alone it "
                "needs no vectors.", str | None, ("--like",))  # fmt: skip
    return [*found, _parameter("demo", demo, False), _parameter("like", like, None)]


def upgrade(
    *, words: list[str] | None, demo: bool, every: bool, like: str | None, report: Path | None,
    as_json: Path | None, save_map: Path | None, fail_if: list[str] | None, **given: Any,
) -> None:  # fmt: skip
    """Say what to do about a new embedding model, from your own vectors."""
    from benchmark.config.files import require_file_place
    from benchmark.report.renderers import terminal

    every_option = given | {
        "demo": demo, "every": every, "like": like, "report": report, "as_json": as_json,
        "save_map": save_map, "fail_if": fail_if,
    }  # fmt: skip
    if words:
        if words[0] != "doctor":
            raise BenchError(
                f"upgrade: expected 'doctor OLD [NEW]' or options, got '{words[0]:.60}' (several "
                "files of one input go in a folder)"
            )
        _require_used("doctor", every_option, {"id_column", "vector_column", "as_json"})
        _doctor(words[1:], given, as_json)
        return
    prior = None if like is None else _prior(like)
    if prior is not None and not demo and all(given[name] is None for name in INPUTS):
        _require_used("--like", every_option, {"like"})
        terminal.show([prior])
        return
    if demo:
        _require_used("--demo", every_option, every_option.keys() - _OF_VECTORS)
    given["models"] = _models(given["models"])
    given["labels"] = _labels(given.pop("query_labels"), given.pop("gallery_labels"))
    for name in ("id_column", "vector_column"):
        found = columns_of(f"--{name.replace('_', '-')}", given[name])
        general = len(found) == len(VECTORS) and len({*found.values()}) == 1
        given[name] = next(iter(found.values())) if general else found
    if not demo:
        _check(given)
    if report is not None:
        require_file_place(report, "--report")
        save_map = save_map or report.with_suffix(".map")
        as_json = as_json or _beside(report)
    if as_json is not None:
        require_file_place(as_json, "--json")
    _check_places(report, as_json, save_map, [] if demo else _read(given))
    given |= _constraints(given, ask=not demo and sys.stdin.isatty() and sys.stdout.isatty())
    if demo:
        from benchmark.upgrade.read.demo import demo_arguments

        given |= demo_arguments()
    with _of_options(words=True):
        request = UpgradeRequest(**given)
    conditions = [Condition.parse(text) for text in fail_if or ()]
    with Listener() as tell, _of_options():
        from benchmark.contract.conversion import require_place
        from benchmark.upgrade.run import report_on, require_figures
        from benchmark.upgrade.show.tables import tables

        if save_map is not None:
            with located("--save-map"):
                require_place(save_map)
        require_figures(request, conditions)
        result = report_on(request, tell)
    shown = [*tables(result.document, every=every), *([] if prior is None else [prior])]
    _finish(result, shown, conditions, (report, as_json, save_map))


upgrade.__signature__ = Signature(_parameters())  # type: ignore[attr-defined]
app.command(
    rich_help_panel=options.VECTORS,
    epilog="Examples: `bench upgrade --demo` · `bench upgrade --old-gallery old/ --new-gallery "
    "new.parquet --queries q_new.npy --old-queries q_old.npy --qrels qrels.tsv --items 40000000 "
    "--report upgrade.html`",
)(upgrade)


def _finish(
    result: Any, shown: list[Any], conditions: list[Condition], files: tuple[Path | None, ...]
) -> None:
    """Print a report and write its files; exit code 3 where a condition to fail holds."""
    from benchmark.cli.output import echo, unheard
    from benchmark.report.renderers import terminal

    with unheard() as broken:  # first, as a disk may be full
        terminal.show(shown)
        for line in result.document["inputs"]["told"]:
            if line.startswith("Warning: "):
                echo(f"bench: {line[0].lower()}{line[1:]}", err=True)
    lines = _write(result, *files)
    with unheard(broken):
        for line in lines:
            echo(line)
    document = result.document
    if failed := [each.said_of(document) for each in conditions if each.holds(document)]:
        with unheard(broken):
            echo(f"bench: failed: {', '.join(failed)}", err=True)
        raise typer.Exit(3)
    if broken:
        raise broken[0]


def _doctor(names: list[str], given: dict[str, Any], as_json: Path | None) -> None:
    """Look at one or two files of vectors, and print a line for each finding."""
    from benchmark.cli.output import echo
    from benchmark.config.files import require_file_place, write_json
    from benchmark.upgrade.formats import files_read, open_vectors, require_columns
    from benchmark.upgrade.read.health import compare, examine_file

    if not 1 <= len(names) <= 2:
        raise BenchError(f"upgrade: expected 'doctor OLD [NEW]', got {len(names)} files")
    if as_json is not None:
        require_file_place(as_json, "--json")
        _check_places(None, as_json, None, [p for name in names for p in files_read(name)])
    inputs = INPUTS[: len(names)]
    columns = [
        columns_of(f"--{of}-column", given[f"{of}_column"], inputs) for of in ("vector", "id")
    ]
    sides = [[found.get(side, "") for found in columns] for side in inputs]
    require_columns(names, *itertools.chain(*sides))
    sources = [open_vectors(name, *side) for name, side in zip(names, sides, strict=True)]
    found = [finding for source in sources for finding in examine_file(source)]
    if len(sources) == 2:
        found += compare(*sources)
    for name, its in itertools.groupby(found, lambda finding: finding.of):
        echo(name)
        for finding in its:
            echo(f"  {finding}")
    if as_json is not None:
        write_json(as_json, {"findings": [asdict(finding) for finding in found]})


def _require_used(what: str, given: dict[str, Any], used: Set[str]) -> None:
    """Raise a BenchError where an option is given that has no effect on what is done."""
    for each in _parameters():
        if each.name in given and each.name not in used and given[each.name] != each.default:
            why = "has vectors of its own, got" if what == "--demo" else "has no use for"
            raise BenchError(f"upgrade: {what} {why} {_option(each)}")


def _option(each: Parameter) -> str:
    (option,) = each.annotation.__metadata__
    # typer keeps the first name of an option in the place of its default
    name = option.default if isinstance(option.default, str) else each.name.replace("_", "-")
    return f"--{name.removeprefix('--').partition('/')[0]}"


@contextmanager
def _of_options(*, words: bool = False) -> Iterator[None]:
    """Tell what is wrong with a field of its option; in the ``words`` of an error, too."""
    try:
        yield
    except BenchError as error:
        names = {each.name: _option(each) for each in _parameters()} | {"labels": "--query-labels"}
        fields_, colon, said = str(error).partition(": ")
        where = ", ".join(names.get(name, name) for name in fields_.split(", "))
        if words:
            said = re.sub(r"\b[a-z]+_[a-z]+\b", lambda found: names.get(found[0], found[0]), said)
        elif where == fields_:
            raise
        raise BenchError(f"{where}{colon}{said}") from error


class Listener:
    """Shows what is done: on a terminal as it goes on, else a line a minute; results at once."""

    def __init__(self, every: float = 60.0) -> None:
        from rich.console import Console

        self._console, self._every = Console(stderr=True), every
        self._status: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> "Listener":
        if self._console.is_terminal:
            self._status = self._console.status("loading")
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, words: str) -> None:
        """Take a line."""
        now = time.monotonic()
        if isinstance(words, Interim):
            self._print(words)
        elif self._status is not None:
            self._status.update(escape(words))
        elif now - self._said >= self._every:
            self._print(words)
            self._said = now

    def _print(self, words: str) -> None:
        self._console.print(words, markup=False, highlight=False, soft_wrap=True)


def _prior(like: str) -> Any:
    """The table of measured upgrades like one."""
    from benchmark.pairs.records import read_records
    from benchmark.pairs.tables import Like, default_records

    return Like.parse(like).table(read_records(default_records()))


def _write(
    result: Any, report: Path | None, as_json: Path | None, save_map: Path | None
) -> list[str]:
    """Write the files of a report; lines that say where they are."""
    from benchmark.upgrade.show.report import use_of

    if as_json is not None:
        result.save_json(as_json)
    if save_map is not None and result.conversion is not None:
        result.conversion.save(save_map)
    if report is not None:
        result.save_page(report)
    lines = [] if report is None else [f"the page: {report}"]
    if save_map is not None and result.conversion is not None:
        lines.append(f"the map: {use_of(result.conversion, save_map)}")
    elif save_map is not None:
        earlier = "; the one there is of an earlier report" * save_map.exists()
        lines.append(f"no map is recommended: {save_map} is not written{earlier}")
    return lines


def _labels(queries: Path | None, gallery: Path | None) -> tuple[Path, Path] | None:
    if queries is not None and gallery is not None:
        return queries, gallery
    if queries is gallery:
        return None
    missing = "--query-labels" if queries is None else "--gallery-labels"
    raise BenchError(f"upgrade: missing option '{missing}': labels are of both sides")


def _models(words: list[str] | None) -> dict[str, tuple[str, str]] | None:
    """Name of a new model -> files of its sample and its queries."""
    found: dict[str, tuple[str, str]] = {}
    for word in words or []:
        name, equals, files = word.partition("=")
        sample, comma, queries = files.rpartition(",")
        if not (equals and comma and name and sample and queries):
            raise BenchError(f"--new: expected NAME=SAMPLE,QUERIES, got '{word:.80}'")
        if name in found:
            raise BenchError(f"--new: expected each name once, got another '{name:.40}'")
        if not (name.isprintable() and len(name) <= _LONGEST):
            raise BenchError(f"--new: expected a name of {_LONGEST} letters at most: '{name:.60}'")
        found[name] = sample, queries
    return found or None


def _check(given: dict[str, Any]) -> None:
    pairs = given["pairs_new"] is not None or given["pairs_old"] is not None
    names = INPUTS[:1] if given["models"] is not None else INPUTS[:3:2] if pairs else INPUTS[:3]
    if missing := [name.replace("_", "-") for name in names if given[name] is None]:
        raise BenchError(f"upgrade: missing option '--{missing[0]}'; try bench upgrade --demo")


def _beside(report: Path) -> Path:
    """The file of numbers beside the page; BenchError if it holds something else than a report."""
    path = report.with_suffix(".json")
    if path == report or (path.is_file() and '"verdict"' not in path.read_text(errors="replace")):
        raise BenchError(
            f"--report: {path} is something else than a report's numbers: --json names another file"
        )
    return path


def _read(given: dict[str, Any]) -> list[Path]:
    """Every file that the call names."""
    from benchmark.upgrade.formats import files_read

    vectors = [given[name] for name in VECTORS if given[name] is not None]
    vectors += [name for files in (given["models"] or {}).values() for name in files]
    files = [given[name] for name in ("qrels", "texts", "reads", "slices")]
    files = [path for path in (*files, *(given["labels"] or ())) if path is not None]
    return [*(path for name in vectors for path in files_read(name)), *files]


def _check_places(
    report: Path | None, as_json: Path | None, save_map: Path | None, read: list[Path]
) -> None:
    """Raise a BenchError before hours of work, unless results have places that are nobody's."""
    from benchmark.config.files import writable
    from benchmark.config.places import require_apart

    places = (("--report", report), ("--json", as_json), ("--save-map", save_map))
    require_apart(places, read)
    for option, path in places:
        if path is not None:
            writable(real(path).parent, option, keep=False)


def _constraints(given: dict[str, Any], *, ask: bool) -> dict[str, bool]:
    """Abilities of the user: by flags, else by answers on a terminal, else as usual."""
    out = {}
    for name, each in CONSTRAINTS.items():
        usual, value = bool(getattr(Constraints, name)), given[name]
        gone = name == "sources" and given["pairs_new"] is not None
        asked = value is None and ask and not gone
        value = typer.confirm(each.question, default=usual) if asked else value
        out[name] = usual if value is None else bool(value)
    return out
