"""Claims of papers, as expressions over records, and verdicts of the records."""

from benchmark.studies.claims.language import Claim, Claims, read_claims
from benchmark.studies.claims.verdicts import Answer, ClaimVerdict, Line, answer, answers

__all__ = [
    "Answer", "Claim", "ClaimVerdict", "Claims", "Line", "answer", "answers", "read_claims",
]  # fmt: skip
