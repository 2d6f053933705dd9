"""Which Java the servers get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import java


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    java.find_java.cache_clear()
    yield
    java.find_java.cache_clear()


def a_java(home: Path, version: str) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    executable.chmod(0o755)
    return executable


def only(monkeypatch: pytest.MonkeyPatch, *javas: Path) -> None:
    monkeypatch.setattr(java, "_candidates", lambda: iter(javas))


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2"])
def test_a_java_that_hive_runs_on_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    found = a_java(tmp_path, version)
    only(monkeypatch, found)

    assert java.find_java() == found


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "24.0.1", "25"])
def test_a_java_that_hive_does_not_run_on_is_named_and_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    wrong, right = a_java(tmp_path / "wrong", version), a_java(tmp_path / "right", "17.0.1")
    only(monkeypatch, wrong, right)
    assert java.find_java() == right

    java.find_java.cache_clear()
    only(monkeypatch, wrong)
    with pytest.raises(java.NoJavaError, match=f"(?s)Java 17 to 23.*{wrong}"):
        java.find_java()


def test_where_there_is_none_that_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only(monkeypatch, tmp_path / "missing")

    with pytest.raises(java.NoJavaError, match="openjdk-17-jre-headless"):
        java.find_java()


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert next(java._candidates()) == tmp_path / "bin" / "java"
