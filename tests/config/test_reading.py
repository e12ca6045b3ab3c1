"""Strict reading: what is taken, and the one line for what is not."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, model_validator

from benchmark.config.reading import STRICT, Model, build, parse_settings
from benchmark.errors import BenchError, nearest


class Inner(Model):
    size: int
    name: str = "x"


class Outer(Model):
    rate: float
    inner: Inner
    kind: Literal["a", "b"] = "a"
    flag: bool = False
    pair: tuple[float, float] = (0.0, 1.0)
    many: tuple[Inner, ...] = ()
    models: Mapping[str, Inner] = {}
    options: Mapping[str, JsonValue] = {}
    note: str | None = None
    shared: ClassVar[int] = 3

    @model_validator(mode="after")
    def _positive(self):
        if self.rate < 0:
            raise ValueError(f"rate: expected at least 0, got {self.rate}")
        return self


@dataclasses.dataclass(frozen=True)
class Adapter:
    """As methods and datasets are built."""

    __pydantic_config__ = STRICT
    shared: ClassVar[int] = 3
    rate: float = 0.5
    kind: Literal["a", "b"] = "a"

    def __post_init__(self):
        if self.rate < 0:
            raise ValueError(f"rate: expected at least 0, got {self.rate}")


GOOD = {"rate": 0.5, "inner": {"size": 3}}


def test_valid_values():
    outer = build(
        Outer,
        {
            "rate": 2, "inner": {"size": 3, "name": "y"}, "kind": "b", "flag": True,
            "pair": [0, 0.5], "many": [{"size": 1}, {"size": 2}], "models": {"old": {"size": 4}},
            "options": {"any": [1, {"x": None}]}, "note": None,
        },
        "f.yaml",
    )  # fmt: skip
    assert outer == Outer(
        rate=2.0, inner=Inner(size=3, name="y"), kind="b", flag=True, pair=(0.0, 0.5),
        many=(Inner(size=1), Inner(size=2)), models={"old": Inner(size=4)},
        options={"any": [1, {"x": None}]},
    )  # fmt: skip
    assert isinstance(outer.rate, float) and isinstance(outer.pair[0], float)
    assert build(Outer, {**GOOD, "inner": Inner(size=3)}, "f") == build(Outer, GOOD, "f")
    assert build(Outer, {**GOOD, "note": "text"}, "f").note == "text"


def test_a_dataclass_is_read_as_strictly():
    assert build(Adapter, {"rate": 1}, "f") == Adapter(1.0)
    for change, words in (
        ({"rat": 1}, "f: unknown key 'rat'; did you mean 'rate'?"),
        ({"shared": 1}, "unknown key 'shared'"),
        ({"rate": True}, "f: rate: expected a number, got True"),
        ({"rate": -1}, "f: rate: expected at least 0, got -1"),
        ({"kind": "c"}, "kind: expected 'a' or 'b', got 'c'"),
    ):
        with pytest.raises(BenchError) as caught:
            build(Adapter, change, "f")
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rat": 1}, "f.yaml: unknown key 'rat'; did you mean 'rate'?"),
        ({"shared": 1}, "unknown key 'shared'"),
        ({5: 1}, "unknown key '5'"),
        ({"rate": "fast"}, "f.yaml: rate: expected a number, got 'fast'"),
        ({"rate": None}, "rate: expected a number, got None"),
        ({"rate": -1}, "f.yaml: rate: expected at least 0, got -1"),
        ({"flag": 1}, "flag: expected true or false, got 1"),
        ({"kind": "c"}, "kind: expected 'a' or 'b', got 'c'"),
        ({"pair": [0, 1, 2]}, "pair: expected a list of 2, got [0, 1, 2]"),
        ({"pair": 0.5}, "pair: expected a list, got 0.5"),
        ({"pair": [0, "x"]}, "pair[1]: expected a number, got 'x'"),
        ({"inner": {"size": 1.0}}, "inner.size: expected a whole number, got 1.0"),
        ({"inner": {"size": 1, "nam": "x"}}, "inner: unknown key 'nam'; did you mean 'name'?"),
        ({"a[b": 1}, "unknown key 'a[b'"),
        ({"none": 1}, "unknown key 'none'"),
        ({"inner": {"size": 1, "name": 3}}, "name: expected text, got 3"),
        ({"inner": {}}, "inner: missing key 'size'"),
        ({"inner": [1]}, "inner: expected a mapping, got [1]"),
        ({"many": [{"size": 1}, {"size": "x"}]}, "many[1].size: expected a whole number"),
        ({"models": {"old": {"sise": 1}}}, "models.old: unknown key 'sise'"),
        ({"models": [1]}, "models: expected a mapping"),
        ({"note": 3}, "note: expected text, got 3"),
    ],
)
def test_refused_values(change, words):
    with pytest.raises(BenchError) as caught:
        build(Outer, {**GOOD, **change}, "f.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("f.yaml: ") and "\n" not in str(caught.value)


class Numbers(Model):
    whole: int = 0
    number: float = 0.0
    flag: bool = False
    text: str = ""


@given(st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.booleans() | st.text())
def test_no_type_is_converted(value):
    known = {"whole": [int], "number": [int, float], "flag": [bool], "text": [str]}
    for key, kinds in known.items():
        if type(value) in kinds and value not in (float("inf"), float("-inf")):
            assert getattr(build(Numbers, {key: value}, "x"), key) == value
        else:
            with pytest.raises(BenchError, match=f"x: {key}: expected"):
                build(Numbers, {key: value}, "x")


# --- key=value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("3.0", 3.0), ("1e-3", 1e-3), ("-2", -2), ("true", True), ("null", None),
        ("arcface", "arcface"), ("[0, 0.5]", [0, 0.5]), ("{rotate: 3}", {"rotate": 3}),
        ("'3'", "3"), ("nan", "nan"), ("a=b", "a=b"), ("", None),
    ],
)  # fmt: skip
def test_settings(text, value):
    got = parse_settings([f"old.x={text}"])
    assert got == {"old.x": value} and type(got["old.x"]) is type(value)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["old.head"], "expected key=value, got 'old.head'"),
        (["=3"], "expected key=value"),
        (["a.b=1", "a.b=2"], "'a.b' is given twice"),
        (["a.b=[1,"], "--set a.b: cannot read the value"),
        (["a.b=" + "[\0" * 10_000], "--set a.b: cannot read the value"),
    ],
)
def test_settings_refused(pairs, words):
    with pytest.raises(BenchError) as caught:
        parse_settings(pairs)
    line = str(caught.value)
    assert words in line and line.isprintable() and len(line) < 700


def test_nearest():
    assert nearest("weigth", ["weight", "ratio"]) == "; did you mean 'weight'?"
    assert nearest("zzz", ["weight", "ratio"]) == "; known: ratio, weight"
    assert nearest("zzz", []) == ""
