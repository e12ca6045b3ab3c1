"""Generated parts for authors of methods: a batch's fields, and the minutes of a first run."""

import inspect
import re
from collections.abc import Iterator

from benchmark.config import registry
from benchmark.report.run_times import first_runs
from benchmark.training.embedding import Batch

_PROTOCOL = "open-class"


def batch_rows() -> Iterator[tuple[str, str]]:
    """Fields of a batch with what they are, by its docstring."""
    text = inspect.getdoc(Batch) or ""
    found = re.findall(r"^    (\w+): (.+?)(?=^    \w|\Z)", text, re.S | re.M)
    for name, words in found:
        yield f"`batch.{name}`", " ".join(words.split())


def first_run_lines() -> list[str]:
    """The quickest track for a try, and the quickest with a board, by minutes of one protocol."""
    known = {name: first_runs(_PROTOCOL, name) for name in registry.track_files()}
    minutes = {name: min(of.values()) / 60 for name, of in known.items() if of}
    boards = {track for _, track in first_runs(_PROTOCOL)}
    (first, quick), (second, next_one) = (
        min((minutes[name], name) for name in minutes if (name in boards) == ranked)[::-1]
        for ranked in (False, True)
    )
    return [
        f"To try a method, `{first}` takes about {quick:.1f} minutes for it and `independent` "
        f"under `{_PROTOCOL}`, with one seed on one core, by the time of the track that it "
        f"extends; it has no board. Of those with one the quickest is `{second}`, {next_one:.1f} "
        "minutes; its data may be needed, which `bench run ... --dry-run` says. `bench list "
        "tracks` prints the minutes of each track under its quickest protocol, "
        "`bench run ... --dry-run` those of a run; they are of the committed records' processors."
    ]
