"""Plain YAML, and everything else that YAML has, refused in one line."""

import os
import re
import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmark.config import registry
from benchmark.config.reading import read_yaml
from benchmark.config.yaml_files import parse_yaml
from benchmark.errors import BenchError


def test_numbers_with_an_exponent_are_those_of_yaml_1_2():
    assert parse_yaml("[1e-3, -.5E2, 1.e3, 1.5e+3]") == [0.001, -50.0, 1000.0, 1500.0]
    assert parse_yaml("[x1e3, 1e3x, '1e3', e3, 1e]") == ["x1e3", "1e3x", "1e3", "e3", "1e"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &a {x: 1}", "anchors and aliases"),
        ("a: &a [*a]", "anchors and aliases"),
        ("a: *b", "anchors and aliases"),
        ("&a b: 1", "anchors and aliases"),
        ("<<: {a: 1}", "merge keys are not read, line 1, column 1"),
        ("a:\n  <<: [{a: 1}]", "merge keys are not read, line 2, column 3"),
        ("a: !!int abc", "tags are not read, line 1, column 4"),
        ("a: !!python/object/apply:os.system [ls]", "tags"),
        ("a: !!timestamp x", "tags"),
        ("a: !!binary x", "tags"),
        ("a: ! x", "tags"),
        ("a: !<tag:yaml.org,2002:set> {b}", "tags"),
        ("!!map {a: 1}", "tags"),
        ("[" * 10_000, "at most 30 values inside each other, line 1, column 31"),
        ("{a: " * 10_000, "at most 30 values"),
        ("- " * 10_000, "at most 30 values"),
        ("? " * 10_000, "at most 30 values"),
        ("a: [" + "1," * 100_000 + "1]", "at most 20000 values"),
        ("a: 1\na: 2", "'a' is given twice, line 2, column 1"),
        ("a: 1\n'a': 2", "'a' is given twice"),
        ("m:\n  a: 1\n  a: 2", "'a' is given twice, line 3, column 3"),
        ("- 1\n- 2\n", "expected a mapping, got list"),
        ("", "expected a mapping, got NoneType"),
        ("1: 2", "expected text as a key, line 1, column 1"),
        ("on: 2", "expected text as a key"),
        ("~: 2", "expected text as a key"),
        ("? [a]\n: 2", "expected text as a key"),
        ("a: .nan", "expected a number of 64 bits, got .nan, line 1, column 4"),
        ("a: 1.0e+999999", "expected a number of 64 bits"),
        ("a: 1e999999", "expected a number of 64 bits"),
        ("a: 9223372036854775808", "expected a number of 64 bits"),
        ("a: 0x" + "f" * 10_000, "expected a number of 64 bits, got 0xff"),
        ("a: " + "1" * 10_000, "not valid YAML"),
        ("a: " + "59:" * 3000 + "59", "expected a number of 64 bits"),
        ("a: 0x_", "not valid YAML"),
        ('a: "\\U00110000"', "not valid YAML"),
        ("a: \0", "not valid YAML"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: [1", "not valid YAML"),
        ("%" * 1000, "not valid YAML"),
    ],
)
def test_refused(tmp_path, text, words):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    begin = time.process_time()
    with pytest.raises(BenchError) as caught:
        read_yaml(path)
    line = str(caught.value)
    assert words in line and line.startswith(str(path))
    assert line.isprintable() and len(line) < 600
    assert time.process_time() - begin < 10


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"a: \xe4", b"a: \xed\xa0\x80"])
def test_not_utf_8(tmp_path, raw):
    (tmp_path / "p.yaml").write_bytes(raw)
    with pytest.raises(BenchError, match=r"p\.yaml: cannot be read: 'utf-8'"):
        read_yaml(tmp_path / "p.yaml")


def test_files_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "endless.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("pipe", "endless", "folder", "none"):
        with pytest.raises(BenchError, match=f"{name}.yaml: (expected a regular file|cannot be)"):
            read_yaml(tmp_path / f"{name}.yaml")
    (tmp_path / "long.yaml").write_text("#" * (2**20 + 1))
    with pytest.raises(BenchError, match="expected at most 1048576 bytes"):
        read_yaml(tmp_path / "long.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2026-13-45", {"a": "2026-13-45"}),
        ("a: 2026-01-02", {"a": "2026-01-02"}),
        ("a: =", {"a": "="}),
        ("a: '<<'", {"a": "<<"}),
        ("'<<': 1", {"<<": 1}),
        ("'1': 1", {"1": 1}),
        ("a: 9223372036854775807", {"a": 2**63 - 1}),
        ("a: [1, 2.5, true, ~, x, {b: 'y'}]", {"a": [1, 2.5, True, None, "x", {"b": "y"}]}),
        ("a: " + "[" * 28 + "]" * 28, None),
    ],
)
def test_read(text, value):
    assert parse_yaml(text) == (value or yaml.safe_load(text))


@given(st.text(max_size=40) | st.text("[]{}&*!|>'\"%#:-?,<\n ab1.e+_~=", max_size=30))
def test_any_text_is_read_as_before_or_refused(text):
    try:
        value = parse_yaml(text)
    except BenchError as error:
        assert "\n" not in str(error)
        return
    try:
        before = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):  # a date that does not exist, or '='
        return
    # Dates are text now, and 1e3 is a number.
    if "-" not in text and not re.search(r"[\d._][eE]\+?\d", text):
        assert value == before


def test_committed_files_are_read_as_by_plain_yaml():
    files = [*registry.protocol_files().values(), *registry.track_files().values()]
    assert len(files) > 20
    for path in files:
        assert read_yaml(path) == yaml.safe_load(path.read_text())
