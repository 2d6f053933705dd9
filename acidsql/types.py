"""Hive's column types: parsed from Hive's or Spark's syntax, printed for Hive, Spark and ORC.

The grammar is that of Hive's ``TypeInfoUtils`` and ``HiveParser``; the limits are those of ``HiveDecimal``,
``HiveChar`` and ``HiveVarchar``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from acidsql.errors import AnalysisError

MAX_DECIMAL_PRECISION = 38
MAX_CHAR_LENGTH = 255
MAX_VARCHAR_LENGTH = 65535
LOCAL_TIMESTAMP = "timestamp with local time zone"
WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")
"""Types of whole numbers, each wider than the one before."""


@dataclass(frozen=True)
class Primitive:
    """A type without parameters; ``name`` is Hive's (``bigint``, ``timestamp with local time zone``)."""

    name: str


@dataclass(frozen=True)
class Decimal:
    """``decimal(precision, scale)``."""

    precision: int = 10
    scale: int = 0


@dataclass(frozen=True)
class Char:
    """``char(length)``: padded with blanks to ``length`` characters."""

    length: int


@dataclass(frozen=True)
class Varchar:
    """``varchar(length)``: at most ``length`` characters."""

    length: int


@dataclass(frozen=True)
class Array:
    element: HiveType


@dataclass(frozen=True)
class Map:
    key: HiveType
    value: HiveType


@dataclass(frozen=True)
class Struct:
    """``struct<name:type,…>``; names keep their letter case."""

    fields: tuple[tuple[str, HiveType], ...]


def is_as_wide(now: str, was: str) -> bool:
    """Whether a type of whole numbers has all values of another one; false where one of the names is of none."""
    return {now, was} <= set(WHOLE_NUMBERS) and WHOLE_NUMBERS.index(was) <= WHOLE_NUMBERS.index(now)


HiveType: TypeAlias = Primitive | Decimal | Char | Varchar | Array | Map | Struct


def parse_type(text: str) -> HiveType:
    """Parse a type, in Hive's or Spark's syntax and any letter case.

    Spark's ``timestamp_ntz`` is Hive's ``timestamp`` (a wall clock), ``timestamp_ltz`` is
    ``timestamp with local time zone``; a bare ``decimal`` is ``decimal(10,0)``. Comments and NOT NULL of struct fields
    are ignored: Hive's types cannot represent them.

    Raises:
        AnalysisError: When the text is not a type, or not one of an ACID table (uniontype, interval, void), with the
            position in ``text``.
    """
    return _Parser(text).whole()


def to_hive(t: HiveType) -> str:
    """The type as Hive prints it: ``decimal(10,2)``, ``struct<a:int,b:string>``.

    A field name that Hive itself could not parse is back-quoted, so that :func:`parse_type` can.
    """
    return _print(t, _HIVE)


def to_spark(t: HiveType, *, plain_strings: bool = False) -> str:
    """The type as Spark's DDL, names of struct fields back-quoted.

    Args:
        t: The type.
        plain_strings: Write ``string`` for char and varchar, the type in which Spark computes.
    """
    return _print(t, _SPARK_STRINGS if plain_strings else _SPARK)


def to_orc(t: HiveType) -> str:
    """The type in the syntax of ORC's ``TypeDescription``; names that are not plain words are back-quoted."""
    return _print(t, _ORC)


def compared_name(name: str) -> str:
    """What the names of two columns, or fields of a struct, have in common where Spark takes them as equal.

    Spark compares them by Java's ``equalsIgnoreCase``, character by character: the dotless i of Turkish equals i, and
    the micro sign equals the Greek letter, though they differ in lower case.
    """
    return "".join(map(_compared, name))


def _compared(character: str) -> str:
    upper = character.upper() if len(character.upper()) == 1 else character
    if upper == "\u0130":  # Java's lower case of one character is always one
        return "i"
    lower = upper.lower()
    return lower if len(lower) == 1 else upper


def field_names(t: HiveType) -> Iterator[str]:
    """The names of the fields of all structs in the type, at every depth."""
    if isinstance(t, Array):
        yield from field_names(t.element)
    elif isinstance(t, Map):
        yield from field_names(t.key)
        yield from field_names(t.value)
    elif isinstance(t, Struct):
        for name, type in t.fields:
            yield name
            yield from field_names(type)


def contains(t: HiveType, name: str) -> bool:
    """Whether the type is or contains a type of this name (``timestamp``, ``char``, ``map`` …)."""
    if _kind(t) == name:
        return True
    if isinstance(t, Array):
        return contains(t.element, name)
    if isinstance(t, Map):
        return contains(t.key, name) or contains(t.value, name)
    return isinstance(t, Struct) and any(contains(field, name) for _, field in t.fields)


def _kind(t: HiveType) -> str:
    return t.name if isinstance(t, Primitive) else type(t).__name__.lower()


# --- printing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Style:
    """The syntax of types for one reader."""

    quote: Callable[[str], str]
    names: dict[str, str]
    plain_strings: bool = False


def _backquoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _quoted_unless(plain: str) -> Callable[[str], str]:
    pattern = re.compile(plain)
    return lambda name: name if pattern.fullmatch(name) else _backquoted(name)


_SPARK_NAMES = {LOCAL_TIMESTAMP: "timestamp_ltz"}
_HIVE = _Style(_quoted_unless(r"[\w.$]+(?: +[\w.$]+)*"), {})
_SPARK = _Style(_backquoted, _SPARK_NAMES)
_SPARK_STRINGS = _Style(_backquoted, _SPARK_NAMES, plain_strings=True)
_ORC = _Style(_quoted_unless(r"[A-Za-z_0-9]+"), {})


def _print(t: HiveType, style: _Style) -> str:
    if isinstance(t, Primitive):
        return style.names.get(t.name, t.name)
    if isinstance(t, Decimal):
        return f"decimal({t.precision},{t.scale})"
    if isinstance(t, (Char, Varchar)):
        return "string" if style.plain_strings else f"{_kind(t)}({t.length})"
    if isinstance(t, Array):
        return f"array<{_print(t.element, style)}>"
    if isinstance(t, Map):
        return f"map<{_print(t.key, style)},{_print(t.value, style)}>"
    return f"struct<{','.join(f'{style.quote(name)}:{_print(field, style)}' for name, field in t.fields)}>"


# --- reading ---------------------------------------------------------------------------------------------------------

_PRIMITIVES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "byte": "tinyint",
    "smallint": "smallint",
    "short": "smallint",
    "int": "int",
    "integer": "int",
    "bigint": "bigint",
    "long": "bigint",
    "float": "float",
    "real": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": LOCAL_TIMESTAMP,
}
_DECIMALS = ("decimal", "dec", "numeric")
_CHARS = ("char", "character")
_UNSUPPORTED = {"uniontype", "interval", "void", "null", "variant", "object"}
_TOKEN = re.compile(
    r"""\s*(?: (?P<name>[\w.$]+)
             | `(?P<quoted>(?:[^`]|``)+)`
             | (?P<string>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
             | (?P<sign>[<>(),:]) )""",
    re.VERBOSE | re.DOTALL,
)
_UNQUOTED_FIELD = re.compile(r"\s*([^`<>(),:'\"]*[^`<>(),:'\"\s])\s*(?=:)")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


class _Parser:
    """Recursive descent over the text of one type."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._token = self._scan()

    def whole(self) -> HiveType:
        parsed = self._type()
        if self._token.kind != "end":
            self._fail(f"unexpected {self._token.text!r} after the type")
        return parsed

    def _scan(self) -> _Token:
        blank = len(self._text) - len(self._text[self._at :].lstrip())
        if blank == len(self._text):
            return _Token("end", "", blank, blank)
        m = _TOKEN.match(self._text, self._at)
        if m is None or m.lastgroup is None:
            self._raise(f"unexpected character {self._text[blank]!r}", blank, blank + 1)
        start = m.start(m.lastgroup) - (m.lastgroup == "quoted")
        return _Token(m.lastgroup, m[m.lastgroup], start, m.end())

    def _next(self) -> _Token:
        taken = self._token
        self._at = taken.end
        self._token = self._scan()
        return taken

    def _raise(self, message: str, start: int, end: int) -> NoReturn:
        raise AnalysisError(f"Cannot read the type: {message}").locate(self._text, start, end)

    def _fail(self, message: str, token: _Token | None = None) -> NoReturn:
        token = token or self._token
        self._raise(message, token.start, token.end)

    def _is(self, sign: str) -> bool:
        return self._token.kind == "sign" and self._token.text == sign

    def _is_word(self, *words: str) -> bool:
        return self._token.kind == "name" and self._token.text.lower() in words

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            actual = repr(self._token.text) if self._token.kind != "end" else "the end"
            self._fail(f"{sign!r} expected, not {actual}")
        self._next()

    def _type(self) -> HiveType:
        token = self._token
        if token.kind != "name":
            self._fail("a type expected" + (f", not {token.text!r}" if token.kind != "end" else ", not the end"))
        name = self._next().text.lower()
        if name in _DECIMALS:
            return self._decimal(token)
        if name in _CHARS:
            return Char(self._length(token, MAX_CHAR_LENGTH))
        if name == "varchar":
            return Varchar(self._length(token, MAX_VARCHAR_LENGTH))
        if name == "array":
            self._expect("<")
            element = self._type()
            self._expect(">")
            return Array(element)
        if name == "map":
            self._expect("<")
            place = self._token
            key = self._type()
            if isinstance(key, (Array, Map, Struct)):
                self._fail("the key of a map must be a primitive type", place)
            self._expect(",")
            value = self._type()
            self._expect(">")
            return Map(key, value)
        if name == "struct":
            return Struct(self._fields())
        return self._primitive(name, token)

    def _primitive(self, name: str, token: _Token) -> Primitive:
        if name in _UNSUPPORTED:
            self._fail(f"type {name} is not supported", token)
        if name not in _PRIMITIVES:
            self._fail(f"unknown type {token.text!r}", token)
        if name == "double" and self._is_word("precision"):
            self._next()
        if name == "timestamp" and self._is_word("with", "without"):
            return Primitive(self._zone(token))
        return Primitive(_PRIMITIVES[name])

    def _zone(self, token: _Token) -> str:
        """The rest of ``timestamp with local time zone`` or ``timestamp without time zone``."""
        words: list[str] = []
        while self._token.kind == "name" and len(words) < 4 and " ".join(words) != "without time zone":
            words.append(self._next().text.lower())
        if words == ["with", "local", "time", "zone"]:
            return LOCAL_TIMESTAMP
        if words == ["without", "time", "zone"]:
            return "timestamp"
        self._fail(f"type timestamp {' '.join(words)} is not supported", token)

    def _numbers(self, limit: int) -> list[tuple[int, _Token]]:
        """The parameters in parentheses, at most ``limit``; empty without parentheses."""
        numbers: list[tuple[int, _Token]] = []
        if not self._is("("):
            return numbers
        while not numbers or self._is(","):
            self._next()
            if not (self._token.kind == "name" and self._token.text.isdecimal()) or len(numbers) == limit:
                self._fail("a number expected" if len(numbers) < limit else "too many parameters")
            token = self._next()
            numbers.append((int(token.text), token))
        self._expect(")")
        return numbers

    def _decimal(self, token: _Token) -> Decimal:
        numbers = self._numbers(2)
        if not numbers:
            return Decimal()
        precision, place = numbers[0]
        if not 1 <= precision <= MAX_DECIMAL_PRECISION:
            self._fail(f"the precision of a decimal must be 1 to {MAX_DECIMAL_PRECISION}", place)
        scale, place = numbers[1] if len(numbers) > 1 else (0, token)
        if scale > precision:
            self._fail(f"the scale of a decimal must not exceed its precision, {precision}", place)
        return Decimal(precision, scale)

    def _length(self, token: _Token, longest: int) -> int:
        numbers = self._numbers(1)
        if not numbers:
            self._fail(f"{token.text} needs a length, such as {token.text}(10)", token)
        length, place = numbers[0]
        if not 1 <= length <= longest:
            self._fail(f"the length of a {token.text} must be 1 to {longest}", place)
        return length

    def _fields(self) -> tuple[tuple[str, HiveType], ...]:
        if not self._is("<"):
            self._expect("<")
        fields: list[tuple[str, HiveType]] = []
        seen: set[str] = set()
        while not fields or self._is(","):
            self._at = self._token.end
            name = self._field_name()
            if name.lower() in seen:
                self._fail(f"two struct fields named {name!r}")
            seen.add(name.lower())
            if self._is(":"):
                self._next()
            fields.append((name, self._type()))
            self._field_tail()
        self._expect(">")
        return tuple(fields)

    def _field_name(self) -> str:
        """A field name: back-quoted, a word, or (as Hive prints it) anything up to the colon."""
        m = _UNQUOTED_FIELD.match(self._text, self._at)
        if m is not None:
            self._at = m.end()
            self._token = self._scan()
            return m[1]
        self._token = self._scan()
        if self._token.kind not in ("name", "quoted"):
            self._fail("the name of a struct field expected")
        token = self._next()
        return token.text.replace("``", "`")

    def _field_tail(self) -> None:
        if self._is_word("not"):
            self._next()
            if not self._is_word("null"):
                self._fail("NULL expected after NOT")
            self._next()
        if self._is_word("comment"):
            self._next()
            if self._token.kind != "string":
                self._fail("a quoted comment expected")
            self._next()
