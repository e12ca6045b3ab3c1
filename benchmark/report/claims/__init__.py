"""What papers claim, as expressions over records, and what the records say of it."""

from benchmark.report.claims.language import Claim, Claims, read_claims
from benchmark.report.claims.verdicts import Answer, Line, Verdict, answer, answers

__all__ = [
    "Answer", "Claim", "Claims", "Line", "Verdict", "answer", "answers", "read_claims",
]  # fmt: skip
