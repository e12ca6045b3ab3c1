"""BibTeX: of this board, and of the paper behind each row."""

from collections.abc import Iterable

from benchmark.records.record import Record
from leaderboard.cards import MethodInfo, bibtex


def board_bibtex(newest: Record) -> str:
    """An entry for the board; its year and version are those of the newest record."""
    code = newest.run.code
    version = " ".join(filter(None, (code.version, (code.commit or "")[:12])))
    fields = {
        "author": "{The CompatBench authors}",
        "title": "{CompatBench, the benchmark of backward-compatible embedding training}",
        "year": (newest.run.finished or "")[:4],
        "note": f"Version {version}" if version else "",
    }
    lines = [f"  {key:<6} = {{{_plain(value)}}}" for key, value in fields.items() if value]
    return "@misc{compatbench,\n" + ",\n".join(lines) + "\n}"


def method_bibtex(methods: Iterable[MethodInfo]) -> str:
    """The entries of some methods, each paper once; a method without a paper is a comment."""
    entries: dict[str, list[str]] = {}
    for info in methods:
        name = info.method.partition(":")[0]
        entry = bibtex(info.method, str(info.card.get("paper", "")))
        if entry:
            entries.setdefault(entry, []).append(info.method)
        elif info.ranked:
            entries.setdefault(f"% {_plain(name)}: no paper", [])
    lines = [f"% {', '.join(map(_plain, of))}\n{e}" if of else e for e, of in entries.items()]
    return "\n\n".join(sorted(lines)) + "\n"


def _plain(text: str) -> str:
    """One line, as a comment of BibTeX must be."""
    return " ".join(text.split())
