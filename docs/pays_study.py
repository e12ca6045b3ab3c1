"""The study of factors in Markdown: a sentence, a table and a plot each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmark.errors import AbsentError
from benchmark.records.files import find_records
from benchmark.report import render
from benchmark.studies.factors import tables
from benchmark.studies.factors.model import fit, read_study

STUDY = Path("results") / "studies" / "pays"


def lines(folder: Path = STUDY) -> Iterator[str]:
    """Tables of what is kept of the upgrade, by each factor."""
    study = read_study(folder)
    try:
        records = [each.record for each in find_records(folder)]
        found = [fit(study, records, metric) for metric in study.metrics]
    except AbsentError:
        yield "No records of two seeds yet."
        return
    for each in found:
        yield f"{tables.answer(study, each)} {tables.summary(each)}\n"
        for table in tables.tables(study, [each]):
            yield render(table, "markdown")
