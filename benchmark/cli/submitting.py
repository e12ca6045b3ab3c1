"""The verbs of ``bench`` for those who add a method or a result: parse, call, print."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from benchmark.cli import options
from benchmark.cli.output import echo
from benchmark.errors import BenchError, located

app = typer.Typer()
_MOST_LINES = 200


@app.command(
    "new-method",
    rich_help_panel=options.ADD,
    epilog="Examples: `bench new-method my-loss` · `bench new-method my-map -k map`",
)
def new_method(
    name: Annotated[str, Argument(help="Its name: `my-loss` becomes `methods/my_loss.py`.")],
    kind: Annotated[Literal["training", "map"], Option(
        "--kind", "-k", help="`training`: a loss of your own; `map`: a map of stored vectors."
    )] = "training",
) -> None:  # fmt: skip
    """Write a method and its test from a template that passes."""
    from benchmark.config.new_method import write_method

    method, test = write_method(name, kind)
    echo(f"{method}\n{test}")
    echo(f"next: bench check {name}, and pytest {test}")


@app.command(
    rich_help_panel=options.ADD,
    epilog="Examples: `bench validate results` · `bench validate results --against origin/main` · "
    "`bench validate runs/measured/open-class/toy/bct/seed-0.json`",
)
def validate(
    path: Annotated[Path, Argument(help="A folder of records, or one record.")],
    against: Annotated[str, Option(
        help="What was there before: a folder, or a git revision. New records must then be of "
        "today's versions and have seeds 0 to 2; none may be removed or silently changed."
    )] = "",
    protocols: options.OwnProtocols = "", tracks: options.OwnTracks = "",
) -> None:  # fmt: skip
    """Look at records as a reviewer would: schema, place, scores, versions, what was there."""
    from benchmark.config.loading import known_by_id
    from benchmark.harness.submission import other_than_today
    from benchmark.records.submissions import earlier, validate

    own = known_by_id(options.split(protocols), options.split(tracks))
    with own, earlier(against, path) if against else nullcontext() as base:
        found = validate(path, base, other_than_today)
    for problem in found.problems[:_MOST_LINES]:
        echo(problem)
    new = f", {len(found.new)} of them new or changed" if against else ""
    n, wrong = len(found.records), len(found.problems)
    counted = f"{n} record{'s' * (n != 1)}{new}"
    if found.changed:
        echo(
            f"records of changed settings, below {path / 'changed'}: {found.changed}; they are of "
            "no board and not looked at"
        )
    if wrong:
        more = wrong - _MOST_LINES
        rest = f", {more} of them not shown" if more > 0 else ""
        raise BenchError(f"validate {path}: {counted}: {wrong} problem{'s' * (wrong != 1)}{rest}")
    echo(f"{counted}: nothing is wrong")


@app.command(
    rich_help_panel=options.ADD,
    epilog="Examples: `bench submit my-loss` · `bench submit my-loss --out my-loss-1`",
)
def submit(
    method: Annotated[str, Argument(help="A method; its variants come along.")],
    results: Annotated[Path, Option(help="Where its records lie.")] = Path("results"),
    out: Annotated[
        Path | None, Option(help="Folder to write; by default `submission-NAME`.")
    ] = None,
) -> None:
    """Check a method, gather its records, and write the text of its pull request."""
    from benchmark.harness.submission import gather, write_bundle

    name = method.partition(":")[0]
    submission = gather(name, results, echo)
    for line in submission.missing:
        echo(f"missing: {line}")
    if submission.missing:
        n = len(submission.missing)
        raise BenchError(f"submit {name}: {n} {'thing is' if n == 1 else 'things are'} missing")
    echo(write_bundle(submission, results, out or Path(f"submission-{name}")))


@app.command(
    rich_help_panel=options.ADD,
    epilog="Examples: `bench verify results/measured/open-class/glyphs/bct/seed-0.json` · "
    "`bench verify runs/measured/open-class/toy/bct/seed-0.json`",
)
def verify(
    record: Annotated[Path, Argument(help="A record's file.")],
    data_root: Annotated[
        Path | None, Option(help="Folder of the images, if the track needs one.")
    ] = None,
    store: Annotated[
        Path | None, Option(help="Keep what is trained, for the next record; else nothing is kept.")
    ] = None,
    protocol: options.OwnProtocols = "",
    track: options.OwnTracks = "",
) -> None:
    """Train a record's work again, minutes to hours, and compare; one that holds gets a badge."""
    from benchmark.cli.running import Progress
    from benchmark.config.files import writable
    from benchmark.config.loading import known_by_id
    from benchmark.harness.repeating import repeat
    from benchmark.records.files import read_record
    from benchmark.records.verified import write_verification

    if record.name.startswith("verified-"):
        of = record.with_name(record.name.removeprefix("verified-"))
        raise BenchError(f"{record}: expected a record, got the badge of one: {of}")
    first = read_record(record)
    writable(record.parent, "verify")
    own = known_by_id(options.split(protocol), options.split(track))
    with own, located(f"verify {record}"), Progress() as reporter:
        repetition = repeat(first, data_root=data_root, store=store, reporter=reporter)
        badge = repetition.verification()
    points, where = repetition.farthest()
    if differing := repetition.differing:
        where = where if points else f"of other {', '.join(differing)}"
        echo(f"{points:.4g} points apart at most: {where}")
    else:
        echo("bit for bit the same")
    if badge is None:
        echo(f"not verified: {repetition.machines}; {repetition.outside()}")
        return
    echo(f"{badge.words}\n{write_verification(record, badge)}")
