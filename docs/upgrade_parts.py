"""Parts of the guide to ``bench upgrade`` that its own code prints, on the demo's vectors."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import benchmark
from benchmark.report import render
from benchmark.report.text_table import simple_table
from benchmark.upgrade.decide.verdict import rule
from benchmark.upgrade.read.demo import demo_arguments
from benchmark.upgrade.show import sections, tables


def cutoffs(*thresholds: str) -> list[str]:
    """Cut-offs that the report on the demo finds in the place of these."""
    return _of_demo("thresholds", threshold=[float(each) for each in thresholds])


def compressed() -> list[str]:
    """Vectors of the demo in fewer bits."""
    return _of_demo("compressed", compressed=True)


def cascade() -> list[str]:
    """Cascades of the demo by depth."""
    return _of_demo("cascade", transition=True)


def backfilling() -> list[str]:
    """The demo while items are embedded again."""
    return _of_demo("backfilling", transition=True)


def slices() -> list[str]:
    """Two tenants of the demo's queries: those of an even class, and of an odd one."""
    given = demo_arguments()
    names = ("even classes", "odd classes")
    lines = zip(given["ids"]["queries"], given["labels"][0], strict=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slices.tsv"
        path.write_text("".join(f"{key}\t{names[label % 2]}\n" for key, label in lines))
        return _of_demo("slices", slices=path)


def verdict(items: str) -> list[str]:
    """The verdict on the demo, of so many items."""
    return _of_demo("verdict", items=int(items))


def unwritten() -> list[str]:
    """The verdict on the demo where the index stays as it is."""
    return _of_demo("verdict", index=False)


def alignment() -> list[str]:
    """The demo without new vectors of the items that queries look for, as if they were gone."""
    given = demo_arguments()
    new_ids, new = given["ids"].pop("new_gallery"), given.pop("new_gallery")
    stored = {key: k for k, key in enumerate(given["ids"]["old_gallery"].tolist())}
    asked = set(given["labels"][0].tolist())
    classes = given["labels"][1]
    rows = [k for k, key in enumerate(new_ids.tolist()) if classes[stored[key]] not in asked]
    old = given["old_gallery"][[stored[key] for key in new_ids[rows].tolist()]]
    return _of_demo(
        "alignment", new_gallery=None, ids=given["ids"], pairs_new=new[rows], pairs_old=old
    )


def gone() -> list[str]:
    """Reports without new vectors of items beside the truth, from ``bench pairs gone``."""
    from benchmark.pairs.gone import gone_table, least_table

    path = Path(__file__).parent / "figures" / "sources-gone.json"
    found = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return render([gone_table(found), least_table(found)], "markdown").splitlines()


def mixed() -> list[str]:
    """Indexes that the doctor takes for mixed ones, from ``bench pairs mixed``."""
    from benchmark.pairs.mixed import mixed_table

    path = Path(__file__).parent / "figures" / "models-mixed.json"
    found = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return render([mixed_table(found)], "markdown").splitlines()


def models() -> list[str]:
    """The demo's new model beside itself cut to its first half, and to its first eighth."""
    given = demo_arguments()
    new, queries = given["new_gallery"], given["queries"]
    models = {f"numbers-{d}": (new[:, :d], queries[:, :d]) for d in (64, 32, 8)}
    return _of_demo("models", models=models, new_gallery=None, queries=None)


def models_rule() -> list[str]:
    """The rule of several models."""
    from benchmark.upgrade.decide.models import RULE

    return [RULE]


def _of_demo(name: str, **asked: Any) -> list[str]:
    """A table of the report on the demo, as a terminal has it."""
    made = {"verdict": tables.verdict, "backfilling": sections.backfilling, **sections.ASKED}
    document = benchmark.upgrade(**demo_arguments() | asked).document
    return render([made[name](sections.shortened(document))], "markdown").splitlines()


def verdicts() -> list[str]:
    """Verdicts on simulated queries, from the figures of ``bench perf verdicts``."""
    path = Path(__file__).parent / "figures" / "verdicts.json"
    found = json.loads(path.read_text(encoding="utf-8"))["rows"]
    shares = ("keep", "strategy", "re-embed", "undecided", "wrong", "missed")
    rows = [
        (
            f"{row['queries']:,}", str(row["tried"]), f"{100 * row['upgrade']:g}",
            "" if row["share"] is None else f"{row['share']:.1f}",
            *(f"{100 * row[key]:.1f}" for key in shares), str(row["draws"]),
        )
        for row in found
    ]  # fmt: skip
    heads = ["queries", "tried", "upgrade", "share", "keep old", *shares[1:], "draws"]
    table = simple_table("", "", heads, (), rows)
    return [render(table, "markdown").strip()]


def upgrade_rule() -> list[str]:
    """The rule of the verdict."""
    return [f"{number}. {step}" for number, step in enumerate(rule(), 1)]


PARTS: Mapping[str, Callable[..., list[str]]] = {
    "cutoffs": cutoffs, "compressed": compressed, "models": models, "models-rule": models_rule,
    "cascade": cascade, "backfilling": backfilling, "gone": gone, "mixed": mixed,
    "verdicts": verdicts, "slices": slices, "verdict": verdict, "unwritten": unwritten,
    "alignment": alignment, "rule": upgrade_rule,
}  # fmt: skip
"""Name in a comment -> lines of Markdown."""
