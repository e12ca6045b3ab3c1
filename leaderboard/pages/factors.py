"""The page "When does it pay": which settings decide what a method keeps of the upgrade."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import AbsentError, BenchError
from benchmark.records.files import STUDIES, study_records
from benchmark.report import numbers
from benchmark.report.outcome import RAW
from benchmark.studies.factors import tables
from benchmark.studies.factors.design import FILE, FactorStudy, read_study
from benchmark.studies.factors.model import Factors, fit

NAME = "pays"
"""Of the study."""


def factors_page(
    roots: Sequence[Path], damaged: Callable[[BenchError], None]
) -> dict[str, Any] | None:  # fmt: skip
    """Values of the template; None without the study, or before its records.

    ``damaged`` is called with what cannot be read.
    """
    folders = [place / STUDIES / NAME for root in roots for place in (root, root.parent)]
    folder = next((each for each in folders if (each / FILE).is_file()), None)
    if folder is None:
        return None
    try:
        study = read_study(folder)
        records = [each.record for each in study_records(roots, NAME, damaged)]
        found = [fit(study, records, metric) for metric in study.metrics]
    except AbsentError:
        return None
    except BenchError as error:
        damaged(error)
        return None
    from benchmark.report.plots import style  # matplotlib takes a second
    from benchmark.studies.factors.plot import drawings

    return {
        "study": study, "found": [tables.summary(each) for each in found],
        "answers": [tables.answer(study, each) for each in found],
        "raw": RAW if any(e.method == RAW for each in found for e in each.effects) else "",
        "factors": [_factor(study, found, name) for name in study.factors],
        "figures": dict(style.files(drawings(study, found[:1]), ["svg"])),
    }  # fmt: skip


def _factor(study: FactorStudy, found: Sequence[Factors], name: str) -> dict[str, Any]:
    return {
        "title": study.factors[name].title, "name": name,
        "told": [
            (numbers.metric(each.metric).label, tables.sentence(study, each, name))
            for each in found
        ],
        "figure": f"factors-{name}-{found[0].metric}.svg",
        "tables": [t for each in found for t in tables.tables(study, [each]) if name in t.slug],
    }  # fmt: skip
