"""Titles of stages, by which records name times, curves and checkpoints: made and read here."""

import re
from dataclasses import dataclass
from typing import Self

from benchmark.records.record import Record

MODEL, TEXT_MODELS = "model", "text and image models"
"""Kind of a generation, in titles of stages."""
_SIDE = "side-information "
_TITLE = re.compile(rf"(\S+) ({_SIDE})?(.*?)(?: \(seed (\d+)\))?", re.DOTALL)


@dataclass(frozen=True)
class StageTitle:
    """Title of a stage, for people, and as records name it."""

    verb: str  # ``dataset``, ``features``, ``train``, ``fit``, ``embed`` or ``evaluate``
    of: str  # what it is done to
    seed: int | None = None  # of a training or an evaluation
    side: bool = False  # True of the training of a side-information model

    def __str__(self) -> str:
        seed = "" if self.seed is None else f" (seed {self.seed})"
        return f"{self.work}{seed}"

    @property
    def work(self) -> str:
        """The title without the seed."""
        return f"{self.verb} {_SIDE * self.side}{self.of}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a title of a record.

        Example:
            >>> StageTitle.parse("train side-information simclr of old (seed 2)")
            StageTitle(verb='train', of='simclr of old', seed=2, side=True)
        """
        found = _TITLE.fullmatch(text)
        if found is None:
            return cls(text, "")
        verb, side, of, seed = found.groups()
        return cls(verb, of, None if seed is None else int(seed), bool(side))


def old_model(record: Record) -> str | None:
    """Hash of the shared first generation's weights; ``None`` where a record does not say it.

    Of a method that trains the first generation its own way it is the shared one, too, which its
    bounds stand on.
    """
    first = next(iter(record.models))
    kinds = (StageTitle("train", f"{first} {k}", record.first_seed) for k in (MODEL, TEXT_MODELS))
    known = (record.checkpoints.get(str(title)) for title in kinds)
    return next(filter(None, known), None)


def has_own_first(record: Record) -> bool:
    """Tell a method that trains the first generation its own way."""
    title = StageTitle("train", f"{record.method} {next(iter(record.models))}", record.first_seed)
    return str(title) in record.checkpoints
