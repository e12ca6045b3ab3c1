"""The command ``bench``: verbs only; parse, call, print."""

import io
import os
import re
import signal
import sys
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option
from typer.exceptions import TyperException

from benchmark import __version__
from benchmark.cli import (
    data,
    evidence,
    options,
    pairs,
    records,
    results,
    submitting,
    upgrading,
    vectors,
)  # fmt: skip
from benchmark.cli import store as store_verbs
from benchmark.cli.output import echo, fail, passed_over, plain_errors, tell_passed_over
from benchmark.cli.stopping import raise_swallowed_interrupts, signals_as_interrupts
from benchmark.cli.verbs import Command, Verbs
from benchmark.config.memory import keep_freed_memory
from benchmark.errors import BenchError, PassedOverWarning, nearest, unknown

app = typer.Typer(
    name="bench",
    cls=Verbs,
    help="CompatBench: which method to trust when the embedding model is upgraded.",
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


_STOPPED = 130
_GOES_ON = {"run", "get", "resize"}
"""Verbs, or those of a group, that keep what they have finished."""

# On a busy machine threads that spin while they wait make a training ten times slower; libgomp
# reads this when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@app.command(
    rich_help_panel=options.MEASURE,
    epilog="Examples: `bench run -m bct,fct,mixbct -p open-class` · "
    "`bench run -m l2 -p open-data --seeds 0-2 --set l2.weight=5` · "
    "`bench run -m bct -p extended-class -t folder --data-root photos`",
)
def run(
    protocol: options.Protocol,
    methods: Annotated[str | None, Option(
        "--methods", "-m", show_default=False,
        help="Methods, with commas: `bct,fct:simclr,mixbct`. Only a dry run goes without, "
        "with `independent`.",
    )] = None,
    track: Annotated[
        str, Option("--track", "-t", help="A track, or the path of a YAML file.")
    ] = "glyphs",
    data_root: Annotated[str | None, Option(
        help="Folder of the images, if the track needs one; of two datasets "
        "`imagenet=DIR,places365=DIR`."
    )] = None,
    seeds: Annotated[str, Option(help="Seeds: `0`, `0,1,2` or `0-4`.")] = "0",
    settings: Annotated[list[str] | None, Option(
        "--set", help="Change a field: `old.head=arcface`, `bct.weight=2`. Repeatable."
    )] = None,
    sweep: Annotated[list[str] | None, Option(
        help="Run at each value of a field: `mixbct.ratio=0.1,0.3`. Repeatable."
    )] = None,
    first_seed: Annotated[int | None, Option(help="Fix the first generation's seed apart.")] = None,
    device: Annotated[
        str, Option(help="`auto`, `cpu`, `cuda`, `mps`; `cuda:2` and `cpu:2` are two of them.")
    ] = "auto",
    processes: options.Processes = 1,
    engine: options.Engine = "local",
    precision: Annotated[Literal["recipe", "32-true"], Option(
        help="Of trainings: `recipe`, or `32-true` on every machine and for every recipe."
    )] = "recipe",
    existing: Annotated[Literal["skip", "missing", "overwrite"], Option(
        help="`skip` answers from results of the same work, `missing` keeps any result that "
        "is there, `overwrite` computes everything anew."
    )] = "skip",
    published: options.Published = None,
    store: options.Store = None,
    out: Annotated[
        Path, Option(help="Folder of records, tables, plots and the page.")
    ] = Path("runs"),
    records_only: Annotated[
        bool, Option("--records-only", help="Write records; no tables, plots or page.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the plan and what of it is stored.")
    ] = False,
) -> None:  # fmt: skip
    """Run methods under a protocol and show how they compare: minutes to hours."""
    from benchmark.cli import running
    from benchmark.config.data_roots import folders_of
    from benchmark.config.places import require_outside
    from benchmark.config.reading import parse_settings
    from benchmark.config.seeds import parse_seeds
    from benchmark.config.sweep import parse_axes, points
    from benchmark.harness.execution import Compute
    from benchmark.harness.published_models import parse_published
    from benchmark.harness.requests import make_requests
    from benchmark.harness.runs import carry_out
    from benchmark.training.device import parse_device

    if methods is None and not dry_run:
        raise BenchError("run: missing option '--methods' / '-m'; see bench list methods")
    labels = ["independent"] if methods is None else options.split(methods)
    axes, asked = parse_axes(sweep or []), parse_settings(settings or [])
    unsuited: list[BenchError] = []
    requests = [
        request
        for chosen in points(axes, asked)
        for request in make_requests(
            labels, protocol, str(chosen.pop("track", track)), data_root=data_root,
            seeds=parse_seeds(seeds), settings=chosen, first_seed=first_seed, without_data=dry_run,
            precision=precision, on_unsuited=unsuited.append,
        )
    ]  # fmt: skip
    for line in dict.fromkeys(map(str, unsuited)):
        echo(f"bench: {line}", err=True)
    told: list[str] = []
    if asked and not any("track" in axis.fields for axis in axes):
        told = running.tell_idle(protocol, str(asked.pop("track", track)), asked, labels)
    running.tell_unread(requests, asked, told)
    for request in requests:
        require_outside({"--out": out, "--store": store}, folders_of(request.data_root))
    accelerator = parse_device(device)
    if dry_run:
        if methods is None:
            echo("methods independent, as no others are given with -m (bench list methods)")
        running.print_plans(requests, store, out, parse_published(published), existing)
        return
    compute = Compute(accelerator.accelerator, accelerator.devices, processes, engine)
    with running.Progress() as reporter:
        models = parse_published(published)
        results = carry_out(
            requests, existing, store, out, compute, reporter, models, queries=not records_only
        )
    if records_only:
        folders = {request.folder(out) for request in requests}
        echo(f"{len(results)} records below {folders.pop() if len(folders) == 1 else out}")
    elif axes:
        running.print_sweep(results, axes, out)
    else:
        running.print_results(results, requests[0].folder(out))


@app.command(
    "list",
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench list methods` · `bench list tracks --json`",
)
def list_(
    kind: Annotated[Literal["methods", "protocols", "tracks"], Argument(help="What to list.")],
    as_json: options.AsJson = False,
) -> None:
    """List methods, or protocols or tracks with the minutes of a first run, one line each."""
    from benchmark.cli import catalog

    catalog.print_list(kind, as_json=as_json)


@app.command(
    rich_help_panel=options.LOOK_UP,
    epilog="Examples: `bench info mixbct` · `bench info open-class` · `bench info glyphs --all`",
)
def info(
    name: Annotated[str, Argument(help="A method, protocol or track, or the YAML file of one.")],
    whole: Annotated[bool, Option("--all", help="Every field, not one screen.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the card of a method, protocol or track, on one screen."""
    from benchmark.cli import catalog

    catalog.print_card(name, as_json=as_json, whole=whole)


app.add_typer(records.app)
app.add_typer(submitting.app)
app.add_typer(evidence.app)
app.add_typer(upgrading.app)
app.add_typer(vectors.app)
app.add_typer(store_verbs.app, name="store", rich_help_panel=options.MAINTAIN)
app.add_typer(results.app, name="results", rich_help_panel=options.MAINTAIN)
app.add_typer(data.app, name="data", rich_help_panel=options.MAINTAIN)
app.add_typer(pairs.app, name="pairs", rich_help_panel=options.VECTORS)


@app.command(
    rich_help_panel=options.ADD,
    epilog="Examples: `bench check bct` · `bench check my-loss --protocol open-data`",
)
def check(
    method: Annotated[str, Argument(help="A method, `bct` or `bct:distill`.")],
    protocol: options.Protocol = "open-class",
) -> None:
    """Try a method in seconds: what it gives, whether it repeats, and what it declares."""
    from benchmark.cli.output import progress_bar
    from benchmark.config import registry
    from benchmark.config.new_method import placeholders
    from benchmark.harness.checking.method import CHECKS, check_method

    with progress_bar(f"check {method}") as told:
        for i, line in enumerate(check_method(method, protocol)):
            echo(line)
            told((i + 1) / CHECKS)
    file = registry.method_file(method)
    if left := placeholders(file.source.decode()):
        echo(
            f"before its records are computed, replace the words of the template in "
            f"{file.path.name}: {left}"
        )


@app.command(rich_help_panel=options.MAINTAIN, epilog="Example: `bench doctor`")
def doctor() -> None:
    """Say what this installation has and what it can do."""
    from benchmark.cli.doctor import diagnose

    sound = True
    for name, state, good in diagnose():
        echo(f"{'ok ' if good else 'BAD'}  {name}: {state}")
        sound = sound and good
    if not sound:
        raise BenchError("doctor: some parts do not work, see the lines marked BAD")


@app.command(
    rich_help_panel=options.MAINTAIN,
    epilog="Example: `bench perf ranking --queries 10000 --gallery 10000 --json perf.json`",
)
def perf(
    what: Annotated[str, Argument(
        help="`ranking`, `verification`, `identification`, `backfill`, `lists`, `training`, `maps`,"
        " `data`, `gpu`, `convert`, `upgrade`, `tolerance`, `store`, `site`, `coverage`,"
        " `verdicts`, `differences`."
    )],
    queries: Annotated[
        int | None, Option(min=1, help="Queries, probe templates or training images.")
    ] = None,
    gallery: Annotated[int | None, Option(min=1, help="Items or enrolled templates.")] = None,
    dim: Annotated[int | None, Option(min=1, help="Dimension of embeddings.")] = None,
    classes: Annotated[int | None, Option(min=1, help="Classes or subjects.")] = None,
    items: Annotated[
        int | None, Option(min=1, help="Stored vectors, or records of a site.")
    ] = None,
    side: Annotated[int | None, Option(min=0, help="Dimension of side-information.")] = None,
    samples: Annotated[int | None, Option(min=1, help="Simulated evaluations.")] = None,
    as_json: Annotated[
        Path | None, Option("--json", help="Write the rows and their origin to a file.")
    ] = None,
) -> None:  # fmt: skip
    """Time the engine beside its peers, in one run: minutes."""
    from benchmark import perf as suite
    from benchmark.config.files import require_file_place, writable, write_json
    from benchmark.perf.readme import table

    if what not in suite.names():
        raise unknown("benchmark", what, suite.names())
    if as_json is not None:
        writable(as_json.parent, "--json", keep=False)
        require_file_place(as_json, "--json")
    document = suite.document(
        what, queries=queries, gallery=gallery, dim=dim, classes=classes, items=items, side=side,
        samples=samples,
    )  # fmt: skip
    records.print_tables([table(document["rows"])])
    if as_json is not None:
        write_json(as_json, document)


for _app in (app, *(group.typer_instance for group in app.registered_groups)):
    for _command in _app.registered_commands if _app else ():
        _command.cls = Command


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        echo(f"compatbench {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(argv: list[str] | None = None) -> None:
    """Run the command; what goes wrong ends with one line and exit code 2."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever began this
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # letters that its encoding lacks
    # What Pillow finds odd in a picture that it can read; one that it cannot is an error.
    warnings.filterwarnings("ignore", module=r"PIL\.")
    sys.unraisablehook = raise_swallowed_interrupts
    keep_freed_memory()
    before, warnings.showwarning = warnings.showwarning, partial(_show, warnings.showwarning)
    try:
        with signals_as_interrupts() as ended, plain_errors():
            _require_values(sys.argv[1:] if argv is None else argv)
            code = app(args=argv, standalone_mode=False)
            tell_passed_over()
    except TyperException as error:
        fail(_usage(error))
    except (KeyboardInterrupt, typer.Abort):
        code = _STOPPED
    except ImportError as error:  # compiled modules make one of an interrupt while they begin
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        code = _STOPPED
    finally:
        warnings.showwarning = before
    if code == _STOPPED:  # Typer makes it of an interrupt
        with suppress(ValueError):  # another one, of a callback say, would end Python otherwise
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        # An interrupt in the text of an `exec` (dataclasses, named tuples) marks Python to end
        # itself by the signal, whatever the exit code, when run as `python -m`; the next clears it.
        exec("")
        words = sys.argv[1:] if argv is None else argv
        more = "; the same command goes on from here" if {*words[:2]} & _GOES_ON else ""
        if more and any(word.endswith("overwrite") for word in words):
            more = "; --existing overwrite begins anew"
        echo(f"bench: stopped{more}", err=True)
        code = 128 + ended[0] if ended else code
    sys.exit(code if isinstance(code, int) else 0)


def _require_values(words: list[str]) -> None:
    """Refuse an empty word, as of a variable that is not set: a filter without a name is none."""
    for before, word in zip(["", *words], words, strict=False):
        if not word.strip() or re.fullmatch(r"--[\w-]+=", word):
            name = word.rstrip("= ") or (before if before.startswith("-") else "an argument")
            raise BenchError(f"{name}: expected a value, got none")


def _show(
    others: Any, message: Warning | str, category: type[Warning], *more: Any, **named: Any
) -> None:
    """Keep what was passed over for the end; ``others`` shows any other warning."""
    if issubclass(category, PassedOverWarning):
        passed_over.append(str(message))
    else:
        others(message, category, *more, **named)


def _usage(error: Any) -> str:
    """A usage error in one line, with the nearest option where a name is wrong."""
    message = " ".join(str(error.format_message()).split())
    name = getattr(error, "option_name", None)
    if name is not None and error.ctx is not None and "Did you mean" not in message:
        known = [o for p in error.ctx.command.params for o in p.opts if o.startswith("--")]
        message = f"unknown option '{name}'{nearest(name, known)}"
    wrong = re.search(r"Value error, '(.*)' is not one of ('.*')\.$", message)
    if wrong is not None:
        choices = re.findall(r"'(.*?)'", wrong[2])
        message = (
            f"{message[: wrong.start()]}unknown choice '{wrong[1]}'{nearest(wrong[1], choices)}"
        )
    if error.ctx is None:
        return message
    verb = error.ctx.command_path.removeprefix(error.ctx.find_root().command_path).strip()
    return f"{verb}: {message}" if verb else message


if __name__ == "__main__":
    main()
