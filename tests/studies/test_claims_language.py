"""Files of claims: their keys, and the one line that says what is wrong with one."""

from __future__ import annotations

import pytest
import yaml

from benchmark import BenchError
from benchmark.studies.claims import read_claims

PART = {
    "protocols": ["open-class"], "metrics": ["cmc_at_1"], "above": ["fct new/old", "bct new/old"],
}  # fmt: skip


def refusal(tmp_path, part=None, **changes) -> str:
    claim = {"says": "A.", "source": "1", "parts": [PART if part is None else part]}
    document = {"papers": {"bct": "BCT"}, "claims": {"bct-1": claim}} | changes
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(BenchError) as error:
        read_claims(path)
    message = str(error.value)
    assert message.startswith(str(path)) and "\n" not in message
    return message


def without(key, **more):
    return {k: v for k, v in PART.items() if k != key} | more


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (PART | {"abvoe": []}, "unknown key 'abvoe'; did you mean 'above'?"),
        (without("above"), "expected one of above, close, unanswered"),
        (PART | {"unanswered": "why"}, "expected one of above, close, unanswered"),
        (without("above", close=["fct new/old", 0.5]), "expected 'close' and 'within' together"),
        (without("protocols"), "expected 'protocols' and 'metrics'"),
        (PART | {"above": ["fct new/old"]}, "expected a list of at least 2"),
        (PART | {"above": ["fct", 0]}, "expected 'METHOD CASE', a number or a mapping, got 'fct'"),
        (PART | {"above": ["__import__('os').system('true')", 0]}, "expected 'METHOD CASE'"),
        (PART | {"above": ["* new/old", 0]}, "expected 'methods' and the method '*' together"),
        (PART | {"methods": ["bct"]}, "expected 'methods' and the method '*' together"),
        (PART | {"above": [{"minus": ["fct new/old"]}, 0]}, "minus: expected a list of at least 2"),
        (PART | {"above": [{"plus": [1, 2]}, 0]}, "unknown key 'plus'"),
        (PART | {"above": [{"mean": [1], "spread": [1, 2]}, 0]}, "got mean, spread"),
        (PART | {"above": [{"method": "fct"}, 0]}, "expected 'case' of 'score' of fct"),
        (PART | {"above": [{"method": "fct", "value": "area", "case": "a/b"}, 0]},
         "expected no 'case' of 'area' of fct"),
        (PART | {"above": [{"method": "fct", "value": "sum"}, 0]}, "value: expected 'score'"),
        (PART | {"above": [{"method": "fct", "value": "curve", "order": "random", "at": 2}, 0]},
         "at: expected at most 1"),
        (PART | {"above": ["fctt new/old", 0]}, "unknown method 'fctt'; did you mean 'fct'?"),
        (PART | {"above": ["fct:x new/old", 0]}, "unknown variant of fct 'x'"),
        (PART | {"protocols": ["open-clas"]}, "unknown protocol 'open-clas'"),
        (PART | {"tracks": ["glyph"]}, "unknown track 'glyph'; did you mean 'glyphs'?"),
        (PART | {"without": ["glyph"]}, "unknown track 'glyph'; did you mean 'glyphs'?"),
        (PART | {"metrics": ["cmc_at_one"]}, "metrics: "),
        (PART | {"by": -1}, "by: expected at least 0"),
    ],
)  # fmt: skip
def test_refused(tmp_path, part, message) -> None:
    assert message in refusal(tmp_path, part)


def test_ids_are_of_papers(tmp_path) -> None:
    claim = {"says": "A.", "source": "1", "parts": [PART]}
    message = refusal(tmp_path, claims={"btc-1": claim})
    assert "expected ids of bct, got 'btc-1'" in message


def test_no_file(tmp_path, monkeypatch) -> None:
    with pytest.raises(BenchError):
        read_claims(tmp_path / "none.yaml")
