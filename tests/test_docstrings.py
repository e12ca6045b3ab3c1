"""First lines of docstrings: an imperative or a noun phrase, never a question."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
QUESTIONS = {"how", "if", "what", "when", "where", "whether", "which", "who", "whose", "why"}


def first_lines():
    """Place and first line of every docstring, and of the text below an attribute."""
    for folder in ("benchmark", "methods", "protocols", "leaderboard", "docs", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    text = node.value.value
                    if isinstance(text, str) and text.strip():
                        place = f"{file.relative_to(ROOT)}:{node.lineno}"
                        yield place, text.strip().splitlines()[0]


def test_no_docstring_opens_with_a_question():
    found = list(first_lines())
    assert len(found) > 2000
    wrong = [f"{at} {text}" for at, text in found if text.split()[0].lower() in QUESTIONS]
    assert not wrong, "\n".join(wrong)
