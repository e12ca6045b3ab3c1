"""First lines of docstrings, never a question, and names of classes, each for one thing."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from support.statements import statements

ROOT = Path(__file__).parents[1]
QUESTIONS = {"how", "if", "what", "when", "where", "whether", "which", "who", "whose", "why"}


@cache
def read(file):
    """Line and first line of every docstring, and of the text below an attribute; all classes."""
    lines, classes = [], []
    for node in statements(file):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and text.strip():
                lines.append((node.lineno, text.strip().splitlines()[0]))
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name)
    return lines, classes


def first_lines():
    """Place and first line of every such text."""
    for folder in ("benchmark", "methods", "protocols", "leaderboard", "docs", "tests"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for line, text in read(file)[0]:
                yield f"{file.relative_to(ROOT)}:{line}", text


def test_no_docstring_opens_with_a_question():
    found = list(first_lines())
    assert len(found) > 2000
    wrong = [f"{at} {text}" for at, text in found if text.split()[0].lower() in QUESTIONS]
    assert not wrong, "\n".join(wrong)


def test_no_class_name_stands_for_two_things():
    """Adapters are apart: each is a file of its own, whose source is a part of its records."""
    names = Counter(
        name
        for folder in ("benchmark", "leaderboard")
        for file in (ROOT / folder).rglob("*.py")
        for name in read(file)[1]
        if not name.startswith("_")
    )
    assert len(names) > 200
    assert [name for name, n in names.items() if n > 1] == []
