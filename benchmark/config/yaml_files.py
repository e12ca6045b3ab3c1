"""Plain YAML: text, numbers, true and false, null, lists and mappings with text as keys.

What a protocol or a track needs, and nothing that a file of others could hide work behind: no
anchors, aliases, merge keys or tags, no dates, no infinite numbers; depth and number of values are
limited before anything is made of them.
"""

import math
import re
from typing import Any

import yaml

from benchmark.errors import BenchError

MOST_BYTES = 2**20
_DEEPEST = 30
_MOST_VALUES = 20_000
_LARGEST = 2**63
_KINDS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "float", "int", "null"))


def parse_yaml(text: str) -> Any:
    """The value of a text of plain YAML; BenchError in one line if it is anything else."""
    try:
        loader = _Plain(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # A number that Python cannot make, or a character that does not exist, is a ValueError.
        raise BenchError(f"not valid YAML: {' '.join(str(error).split()):.300}") from error


class _Plain(yaml.SafeLoader):
    """Safe YAML of fewer kinds, in which a key comes once; plain YAML would take the last."""

    # Without dates, merge keys and other kinds that only some text looks like: these stay text.
    yaml_implicit_resolvers = {  # noqa: RUF012 - as of the base
        first: [(tag, pattern) for tag, pattern in pairs if tag in _KINDS]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """The next value, looked at before it is composed."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        self._values += 1
        self._depth += 1
        problem = ""
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            problem = "anchors and aliases are not read"
        elif event.tag is not None:
            problem = "tags are not read"
        elif self._depth > _DEEPEST:
            problem = f"expected at most {_DEEPEST} values inside each other"
        elif self._values > _MOST_VALUES:
            problem = f"expected at most {_MOST_VALUES} values"
        if problem:
            raise _refusal(problem, event.start_mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag in _KINDS:
                raise _refusal("expected text as a key", key.start_mark)
            if key.value == "<<" and key.style is None:
                raise _refusal("merge keys are not read", key.start_mark)
            if key.value in seen:
                raise _refusal(f"'{key.value}' is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """A number that 64 bits hold."""
        is_float = node.tag == _KINDS[1]
        number: int | float
        number = self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)
        if not (math.isfinite(number) if is_float else abs(number) < _LARGEST):
            raise _refusal(f"expected a number of 64 bits, got {node.value:.60}", node.start_mark)
        return number


def _refusal(problem: str, mark: yaml.Mark) -> yaml.YAMLError:
    return yaml.YAMLError(f"{problem}, line {mark.line + 1}, column {mark.column + 1}")


# YAML 1.2 has numbers with an exponent alone, 1e-3, which were text before.
_Plain.add_implicit_resolver(
    _KINDS[1],
    re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)[eE][-+]?\d+\Z", re.ASCII),
    [*"-+.0123456789"],
)
for _tag in _KINDS[1:3]:
    _Plain.add_constructor(_tag, _Plain.construct_number)
