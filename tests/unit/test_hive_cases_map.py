"""HIVE_CASES.md is true: the tests that it names are there, and it leaves out no case of a class."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
MAP = (TESTS / "HIVE_CASES.md").read_text()


@cache
def functions_of(path: Path) -> frozenset[str]:
    """Names of the test functions of a file, those of classes as ``Class::test``."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + n.name for n in inner if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")}
    return frozenset(found)


def test_every_test_that_the_map_names_is_there() -> None:
    named = re.findall(r"([\w/]+\.py)::([\w:]+)", MAP)
    assert len(named) > 200
    missing = [f"{file}::{test}" for file, test in named if not (TESTS / file).is_file()]
    missing += [f"{file}::{test}" for file, test in named if not missing and test not in functions_of(TESTS / file)]
    assert missing == []


def sections() -> dict[str, tuple[int, list[tuple[str, str]]]]:
    """By class: how many cases it has, and the lines of its table."""
    found = re.findall(r"^## (\w+) \((\d+)\)\n(.*?)(?=^## |\Z)", MAP, re.MULTILINE | re.DOTALL)
    line = re.compile(r"^\| (?!Hive's cases)([^|]*) \| ([^|]*) \|$", re.MULTILINE)
    return {name: (int(count), line.findall(text)) for name, count, text in found}


def test_every_case_of_a_class_has_one_line() -> None:
    assert len(sections()) > 15
    for name, (count, lines) in sections().items():
        cases = Counter(case for left, _ in lines for case in left.split(", "))
        assert [c for c, times in cases.items() if times > 1] == [], name
        assert len(cases) == count, name


def test_every_line_says_what_covers_its_cases_or_why_nothing_does() -> None:
    for _, lines in sections().values():
        for left, right in lines:
            assert ".py::" in right or re.search(r"does not apply: \w", right), left
