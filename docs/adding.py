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
    """The quickest tracks with their minutes under one protocol, those without records too."""
    known = {name: first_runs(_PROTOCOL, name) for name in registry.track_files()}
    minutes = {name: min(of.values()) / 60 for name, of in known.items() if of}
    (first, quick), (second, next_one), *_ = sorted(minutes.items(), key=lambda each: each[1])
    return [
        f"The cheapest track is `{first}`: about {quick:.1f} minutes for your method and "
        f"`independent` under `{_PROTOCOL}`, with one seed on one core. `{second}` takes "
        f"{next_one:.1f}. `bench list tracks` prints the minutes of every track that has records, "
        "`bench run ... --dry-run` those of a run; they are of the committed records' processors."
    ]
