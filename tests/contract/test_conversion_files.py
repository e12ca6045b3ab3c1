"""Conversions kept on disk."""

import json
import os

import numpy as np
import pytest

from benchmark.contract import conversion
from benchmark.contract.arrays import apply_part
from benchmark.contract.conversion import Conversion, Dims
from benchmark.errors import BenchError
from benchmark.models.parts import Affine, FirstDims, KeepSide


def test_save_and_load(arrays, sided, tmp_path, with_priority):
    folder = tmp_path / "deep" / "kept"
    sided.save(folder)
    assert sorted(p.name for p in folder.iterdir()) == ["conversion.json", "convert.safetensors"]
    back = Conversion.load(folder)
    given = arrays["old"], arrays["side"]
    np.testing.assert_array_equal(back.convert(*given), sided.convert(*given))
    for name in ("method", "params", "distance", "dims", "maps_side"):
        assert getattr(back, name) == getattr(sided, name)
    # The harness reads the same files.
    out, _ = apply_part(folder, "convert", *given)
    np.testing.assert_array_equal(out, back.convert(*given))
    # Another conversion in its place leaves nothing of it.
    with_priority().save(folder)
    assert set(Conversion.load(folder).parts) == {"convert", "priority"}
    sided.save(folder)
    assert not (folder / "priority.safetensors").exists()
    assert [p.name for p in folder.parent.iterdir()] == ["kept"]


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_who_may_read_it_follows_the_umask(plain, tmp_path, umask):
    before = os.umask(umask)
    try:
        plain.save(tmp_path / "c")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "c").iterdir()}
    assert set(modes.values()) == {0o666 & ~umask} and len(modes) == 2


def test_a_damaged_folder(plain, tmp_path):
    with pytest.raises(BenchError, match=r"conversion\.json: cannot be read: No such file"):
        Conversion.load(tmp_path)
    plain.save(tmp_path / "a")
    part = tmp_path / "a" / "convert.safetensors"
    damaged = bytearray(part.read_bytes())
    damaged[-1] ^= 1
    part.write_bytes(bytes(damaged))
    with pytest.raises(BenchError, match="digest"):
        Conversion.load(tmp_path / "a")
    part.unlink()
    with pytest.raises(BenchError, match=r"convert\.safetensors: cannot be read: No such file"):
        Conversion.load(tmp_path / "a")
    meta = tmp_path / "a" / "conversion.json"
    kept = json.loads(meta.read_text()) | {"parts": {}}
    for text, said in [
        ("{", "JSON"),
        ("{}", "missing key"),
        ("[]", "expected a mapping"),
        (json.dumps(kept | {"format": 2}), "format: expected 1, got 2"),
        (json.dumps(kept | {"parts": {"../x": ""}}), r"parts.*\.\./x"),
        (json.dumps(kept | {"dims": {"old": 6, "new": "5"}}), "dims.new: expected a whole number"),
        (json.dumps(kept | {"dims": {"old": True, "new": 5}}), "dims.old: expected a whole number"),
        (json.dumps(kept | {"dims": {"old": 0, "new": 5}}), "dims.old: expected more than 0"),
        (json.dumps(kept | {"dims": {"old": 6, "new": 5, "side": -1}}), "dims.side: expected"),
        (json.dumps(kept | {"params": ["width"]}), "params: expected a mapping"),
    ]:
        meta.write_text(text)
        with pytest.raises(BenchError, match=said):
            Conversion.load(tmp_path / "a")


def forged(folder, dims=None, **parts):
    """Write modules as the parts of a conversion whose digests fit."""
    made = Conversion("fct", {}, "l2", Dims(**(dims or {"old": 6, "new": 5})), False, parts)
    made.save(folder)
    return folder


def test_parts_that_do_not_fit_the_dimensions(tmp_path):
    """An intact file may still be of another conversion."""
    good = KeepSide(Affine(6, 5))
    assert Conversion.load(forged(tmp_path / "good", convert=good)).dims.new == 5
    for name, said, dims, parts in [
        ("longer", r"expected \(1, 5\), got \(1, 7\)", None,
         {"convert": KeepSide(Affine(6, 7))}),
        ("input", "convert: cannot be applied", None, {"convert": KeepSide(Affine(8, 5))}),
        ("number", "convert: cannot be applied", None, {"convert": KeepSide(3)}),
        ("none", r"expected \(1, 5\), got \(1, 6\)", None, {}),
        ("bare", "convert: cannot be applied", None, {"convert": FirstDims(5)}),
        ("view", "query_view: cannot be applied", None,
         {"convert": good, "query_view": Affine(9, 5)}),
        ("priority", "priority: expected a number", None, {"convert": good, "priority": good}),
        ("side", "convert: cannot be applied", {"old": 6, "new": 5, "side": 2},
         {"convert": FirstDims(5)}),
    ]:  # fmt: skip
        with pytest.raises(BenchError, match=said) as caught:
            Conversion.load(forged(tmp_path / name, dims, **parts))
        assert "\n" not in str(caught.value)


def test_only_regular_files_are_opened(plain, tmp_path):
    for name in ("conversion.json", "convert.safetensors"):
        folder = tmp_path / name
        plain.save(folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(BenchError, match="expected a regular file"):
            Conversion.load(folder)
    plain.save(tmp_path / "long")
    (tmp_path / "long" / "conversion.json").write_bytes(b" " * (2**20 + 1))
    with pytest.raises(BenchError, match="expected at most 1048576 bytes"):
        Conversion.load(tmp_path / "long")


def test_a_part_is_not_opened_before_its_digest_fits(plain, tmp_path, monkeypatch):
    plain.save(tmp_path / "a")
    (tmp_path / "a" / "convert.safetensors").write_bytes(b"something else")
    monkeypatch.setattr(conversion, "load_module", lambda path: pytest.fail("it was opened"))
    with pytest.raises(BenchError, match="its digest is another"):
        Conversion.load(tmp_path / "a")


def test_nothing_else_is_overwritten(plain, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(BenchError, match="something else"):
        plain.save(tmp_path / "mine")
    with pytest.raises(BenchError, match="cannot be written"):
        plain.save(tmp_path / "mine" / "thesis.txt" / "deep")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"
