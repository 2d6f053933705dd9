"""The documentation: links lead somewhere, the README links every page, and the words are those of the field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "grammar/README.md")),
    *(ROOT / "tests").glob("*.md"),
    *(ROOT / "tests" / "benchmarks").glob("*.md"),
    *sorted((ROOT / "docs").glob("*.md")),
]
LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)\s#]*)(#[^)\s]*)?\)")
AVOIDED = (
    "is not there",
    "puts files together",
    "put together",
    "nobody knows",
    "nobody needs",
    "is taken in with",
    "as it stands",
    "unasked",
    "several partners",
    "waited in vain",
)
"""Literal translations; what to say instead is what an engineer says: does not exist, merges, unknown, obsolete …"""


def prose(page: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The fragments that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The relative links of a page: the file, and the heading in it."""
    for path, fragment in LINK.findall(prose(page)):
        yield (page.parent / path if path else page), fragment.removeprefix("#")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading_of_it(page: Path) -> None:
    for target, fragment in links(page):
        assert target.exists(), f"{page}: {target}"
        assert not fragment or fragment in anchors(target), f"{page}: {target}#{fragment}"


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {target.resolve() for target, _ in links(ROOT / "README.md")}
    assert {page for page in PAGES if page.parent.name == "docs"} <= linked


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if p.parent.name == "docs" or p.parent == ROOT],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_words_are_those_of_the_field(page: Path) -> None:
    written_by_hand, _, _ = page.read_text(encoding="utf-8").partition("<!-- written by ")
    assert [words for words in AVOIDED if words in written_by_hand] == []
