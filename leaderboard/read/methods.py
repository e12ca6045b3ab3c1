"""Methods in words: their cards, kept from one build to the next; BibTeX; keys in words."""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchmark.config import registry
from benchmark.config.declarations import MethodDeclaration
from benchmark.config.files import default_store, read_sealed, write_sealed
from benchmark.errors import BenchError
from benchmark.records.published import Paper
from benchmark.records.record import Record
from benchmark.report.record_facts import words

MethodFamily = Literal["compatible training", "transformation", "baseline", "control", "unknown"]

_OPTIONAL = " where it is kept"
_LARGEST = 1024 * 1024  # bytes of a kept card
_BENCHMARK = Path(registry.__file__).parents[1]
# What a card is made of beside the adapter's own file.
_SOURCES = (
    Path(__file__), _BENCHMARK / "report/card.py", _BENCHMARK / "config/declarations.py",
    *sorted((_BENCHMARK / "contract").glob("*.py")),
)  # fmt: skip


@dataclass(frozen=True)
class MethodInfo:
    """A method in words.

    Attributes:
        needs: What it cannot do without, in the card's words; what it uses where it is kept is not
            among them.
        changes: ``gallery``, ``queries``, ``dimension``.
        card: See :func:`card`; empty where this installation does not know the method.
        error: Why there is no card.
        published: Id of its paper among those with published numbers, if it is there.
        code: Address of its authors' code, if that is known.
    """

    method: str
    family: MethodFamily
    summary: str = ""
    needs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    published: str = ""
    code: str = ""

    @property
    def paper(self) -> "CitedPaper | None":
        """Its paper; None of controls and of what has none."""
        return cited(str(self.card.get("paper", "")))

    @property
    def fidelity(self) -> str:
        """The source that it was built from: ``paper``, ``code``, ``second-hand``, ``ours``."""
        return str(self.card.get("fidelity", "")).partition(":")[0]

    @property
    def ranked(self) -> bool:
        """Bounds and controls may not have a rank."""
        return self.family not in ("baseline", "control")

    @property
    def baseline(self) -> str:
        """Words of what hardly any work already gives; empty of all else."""
        return str(self.card.get("baseline", ""))

    @property
    def indexes(self) -> int:
        """Indexes of the gallery that are kept."""
        return int(self.card.get("indexes", 1))

    @property
    def new_embeddings(self) -> int:
        """Items that the new model embeds while a query waits."""
        return int(self.card.get("new embeddings", 0))

    @property
    def fitted(self) -> bool:
        """Something is fitted on pairs of vectors of the same items."""
        return bool(self.card.get("fitted", True))

    @property
    def second_hand(self) -> str:
        """A mark for what was built without its paper and without its authors' code."""
        return self.fidelity if self.fidelity == "second-hand" else ""

    @property
    def difference(self) -> str:
        """The difference of a variant to the method; empty for methods and unknown variants."""
        variants = self.card.get("variants", {})
        changed = variants.get(self.method.partition(":")[2], {})
        name = self.method.partition(":")[0]
        pairs = ", ".join(setting_words(key, value) for key, value in changed.items())
        return f"As {name}, with {pairs}." if pairs else ""

    @property
    def filters(self) -> dict[str, Any]:
        """Values that filters of a page read."""
        return {
            "family": self.family, "needs": self.needs, "changes": self.changes,
            "ranked": self.ranked,
        }  # fmt: skip


def method_info(name: str) -> MethodInfo:
    """``bct`` or ``bct:distill`` in words; ``unknown`` where it is not installed here."""
    try:
        about = card(name)
    except BenchError as error:
        return MethodInfo(name, "unknown", error=str(error))
    needed = (_plain(need) for need in about["needs"] if not need.endswith(_OPTIONAL))
    needs = tuple(dict.fromkeys(filter(None, needed)))
    changes = tuple(change for change in about["changes"] if change != "training")
    return MethodInfo(name, about["family"], about["summary"], needs, changes, about)


def link_papers(
    infos: Mapping[str, MethodInfo], papers: Mapping[str, Paper]
) -> dict[str, MethodInfo]:
    """Methods with what is known of their papers: first author and year must be the same."""
    linked = {}
    for method, info in infos.items():
        own = info.paper
        found = (
            (name, paper.code)
            for name, paper in papers.items()
            if own and paper.authors.startswith(own.first) and paper.venue.endswith(own.year)
        )
        published, code = next(found, ("", ""))
        linked[method] = replace(info, published=published, code=code)
    return linked


def _plain(need: str) -> str:
    """``side-information simclr`` is side-information; extra dimensions are among the changes."""
    if need.startswith("side-information"):
        return "side-information"
    return "" if need == "nothing but new data" or "extra dimensions" in need else need


def card(name: str) -> dict[str, Any]:
    """The card of ``bct`` or ``bct:distill`` as ``bench info`` shows it, with the family.

    Costs are left out: those on a site come from its own records. Making a card imports torch, so
    it is kept in the store. A BenchError if the method or the variant is unknown.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass"))
    digest.update(registry.method_file(name).source)
    for file in _SOURCES:
        digest.update(file.read_bytes())
    path = default_store() / "cards" / f"{digest.hexdigest()[:24]}.json"
    with contextlib.suppress(BenchError):
        kept = read_sealed(path, _LARGEST)
        if kept.get("method") == name:
            return kept
    from benchmark.report.card import method_card

    method = registry.method(name)
    about = method_card(name, Path("no-such-folder")) | {
        "family": _family(name, method), "baseline": method.baseline, "indexes": method.indexes,
        "new embeddings": method.new_embeddings, "fitted": method.fitted,
    }  # fmt: skip
    about.pop("cost", None)
    # A cache that cannot be written costs time alone.
    with contextlib.suppress(OSError, BenchError):
        write_sealed(path, about, durable=False)
    plain: dict[str, Any] = json.loads(json.dumps(about))
    return plain


def _family(name: str, method: MethodDeclaration) -> MethodFamily:
    if name == "independent":
        return "baseline"
    if method.control:
        return "control"
    trained = method.own_model and not method.runs_old_model
    return "compatible training" if trained else "transformation"


@dataclass(frozen=True)
class CitedPaper:
    """A paper, of ``Authors, Title, Venue Year``."""

    authors: str
    title: str
    venue: str  # empty where none is named
    year: str

    @property
    def first(self) -> str:
        """Family name of its first author."""
        return re.split(r"[ ,]", self.authors, maxsplit=1)[0]

    @property
    def place(self) -> str:
        """Venue and year."""
        return f"{self.venue} {self.year}".strip()


def cited(words: str) -> CitedPaper | None:
    """The paper that a method declares; None for controls, baselines and anything else.

    Example:
        >>> cited("Ramanujan et al., Forward Compatible Training, CVPR 2022").place
        'CVPR 2022'
    """
    match = re.match(
        r"(?P<authors>[^,]+(?:(?:, [A-Z][\w'-]*)+ and [A-Z][\w'-]*)?), "
        r"(?P<title>.+?), (?P<venue>[^,\d]*?) ?(?P<year>\d{4})",
        words,
    )
    if match is None or words.startswith(("Control", "Baseline", "Ours")):
        return None
    return CitedPaper(**match.groupdict())


def bibtex(name: str, words: str) -> str:
    """An entry made of ``Authors, Title, Venue Year``; empty for anything else.

    Example:
        >>> print(bibtex("fct", "Ramanujan et al., Forward Compatible Training, CVPR 2022"))
        @inproceedings{fct2022,
          author    = {Ramanujan and others},
          title     = {{Forward Compatible Training}},
          booktitle = {CVPR},
          year      = {2022}
        }
        >>> "author    = {A and B and C}," in bibtex("x", "A, B and C, Title, ICLR 2025")
        True
    """
    about = cited(words)
    if about is None:
        return ""
    authors = about.authors.removesuffix(" et al.").replace(", ", " and ")
    fields = {
        "author": f"{authors} and others" if about.authors.endswith(" et al.") else authors,
        "title": f"{{{about.title}}}",
        **({"booktitle": about.venue} if about.venue else {}),
        "year": about.year,
    }
    kind = "inproceedings" if about.venue else "misc"
    lines = ",\n".join(f"  {key:<9} = {{{value}}}" for key, value in fields.items())
    return f"@{kind}{{{name.partition(':')[0].replace('-', '')}{about.year},\n{lines}\n}}"


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
    lines = [f"  {key:<6} = {{{_one_line(value)}}}" for key, value in fields.items() if value]
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
            entries.setdefault(f"% {_one_line(name)}: no paper", [])
    lines = [f"% {', '.join(map(_plain, of))}\n{e}" if of else e for e, of in entries.items()]
    return "\n\n".join(sorted(lines)) + "\n"


def _one_line(text: str) -> str:
    """One line, as a comment of BibTeX must be."""
    return " ".join(text.split())


_SETTINGS = {
    ("unknown", "old"): "influence only on classes that the old classifier knows",
    ("unknown", "distill"): "distillation for classes that the old classifier does not know",
    ("unknown", "synthesize"): "mean old features of classes that the old classifier does not know",
    ("direction", "query"): "queries mapped, the gallery left as it is",
    ("direction", "gallery"): "the gallery mapped, queries left as they are",
    ("losses", "l2"): "the squared distance as its only loss",
    ("losses", "disc"): "the new classifier's loss alone",
    ("uncertainty", False): "no uncertainty learned",
}
"""Parameter and value -> words, where those of the parameter alone say nothing."""


def setting_words(key: str, value: Any) -> str:
    """A parameter with its value in words, as they stand behind "with".

    Example:
        >>> setting_words("unknown", "distill"), setting_words("pairs", 100)
        ('distillation for classes that the old classifier does not know', 'pairs 100')
    """
    if isinstance(value, str | bool) and (key, value) in _SETTINGS:
        return _SETTINGS[key, value]
    return f"{words(key)} {'on' if value is True else 'off' if value is False else value}"
