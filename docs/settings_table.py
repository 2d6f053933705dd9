"""Writes the table of all settings.

``make settings`` writes what ``acidsql.settings`` declares into ``settings.md``; a test checks that it is up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from acidsql.settings import IGNORED, REGISTRY, Setting
from acidsql.settings import setting as kinds

TABLE = Path(__file__).with_name("settings.md")
BEGIN = "<!-- written by docs/settings_table.py -->\n"
END = "<!-- end of the table -->\n"

SECTIONS: dict[str, tuple[str, ...]] = {
    "Compactor": ("hive.compactor.", "hive.transactional.", "acidsql.compact", "acidsql.changes.", "acidsql.staging."),
    "Transactions and locks": (
        "hive.txn.", "hive.lock", "hive.max.", "hive.timedout.", "acidsql.lock.", "acidsql.read.",
    ),
    "The store": ("hive.metastore.", "acidsql.metastore."),
    "Statements": ("",),
}  # fmt: skip
"""Name prefixes of each section; a setting belongs to the first section that matches."""

KINDS: dict[Callable[[str], Any], str] = {
    kinds.parse_bool: "true, false",
    kinds.parse_seconds: "duration (s)",
    kinds.parse_size: "size",
    kinds.size_or_auto: "size, or auto",
    kinds.whole_number: "number",
    kinds.above_zero: "number above 0",
    kinds.ratio: "ratio",
    kinds.txn_manager: "a class",
    str: "text",
}


def sections() -> Iterator[tuple[str, list[Setting[Any]]]]:
    """Each section with its settings, by name."""
    remaining = dict(sorted(REGISTRY.items()))
    for title, prefixes in SECTIONS.items():
        yield title, [remaining.pop(name) for name in list(remaining) if name.startswith(prefixes)]


def kind_of(setting: Setting[Any]) -> str:
    """The type of a setting's value, in a word or two."""
    return KINDS.get(setting.parse) or str(setting.parse.__doc__)


def document() -> str:
    """All sections, as Markdown."""
    tables = [f"## {title}\n\n{_table(settings)}" for title, settings in sections()]
    return "\n".join([*tables, f"## Hive settings without effect\n\n{_ignored()}"])


def _ignored() -> str:
    lines = ["| setting | why |", "|---|---|"]
    lines += [f"| `{name}` | {_cell(why)} |" for name, why in sorted(IGNORED.items())]
    return "\n".join(lines) + "\n"


def _table(settings: Iterable[Setting[Any]]) -> str:
    lines = ["| setting | takes | default | effect |", "|---|---|---|---|"]
    lines += [f"| `{s.name}` | {kind_of(s)} | {s.default} | {_cell(s.doc)} |" for s in settings]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def with_tables(text: str, tables: str) -> str:
    """The text with these tables between its markers."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{tables}\n{END}{tail}"


if __name__ == "__main__":
    TABLE.write_text(with_tables(TABLE.read_text(encoding="utf-8"), document()), encoding="utf-8")
