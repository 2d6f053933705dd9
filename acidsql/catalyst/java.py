"""Classes of the JVM and their static members, each looked up once: py4j asks the JVM at every step of a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark.sql import SparkSession

from acidsql.errors import UnsupportedError

SPARK = "org.apache.spark"
_END = "\0"
"""Stands between texts that are passed as one."""

_ASKED_BY_PYSPARK = ("PythonUtils", "PythonSQLUtils", "functions")


class Java:
    """Looks up what acidsql calls in the JVM. Get it from :meth:`of`."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._classes: dict[str, Any] = {}
        self._members: dict[tuple[str, str], Any] = {}
        self._constants: dict[tuple[str, str], Any] = {}
        _keep_found(jvm)

    @staticmethod
    def of(spark: SparkSession) -> Java:
        """That of a session's JVM.

        Raises:
            UnsupportedError: When the session has none of its own.
        """
        jvm = spark._jvm
        if jvm is None:
            raise UnsupportedError("acidsql needs a classic Spark session with its own JVM, not Spark Connect")
        return _of_jvm(jvm)

    def type(self, name: str) -> Any:
        """A class: its constructor, and the owner of its static members."""
        found = self._classes.get(name)
        if found is None:
            found = self._classes[name] = getattr(self._jvm, name)
        return found

    def static(self, owner: str, member: str) -> Any:
        """A static method, or the value of a static field that never changes (``MODULE$``)."""
        found = self._members.get((owner, member))
        if found is None:
            found = self._members[owner, member] = getattr(self.type(owner), member)
        return found

    def constant(self, owner: str, name: str) -> Any:
        """What a static method without arguments answers, where that never changes; asked once."""
        found = self._constants.get((owner, name))
        if found is None:
            found = self._constants[owner, name] = self.static(owner, name)()
        return found

    @cached_property
    def nothing(self) -> Any:
        """An empty Scala ``Seq``."""
        return self.seq([])

    def seq(self, items: Iterable[Any]) -> Any:
        """A Scala ``Seq``."""
        made = self.type("java.util.ArrayList")()
        for item in items:
            made.add(item)
        return self.static(f"{SPARK}.api.python.PythonUtils", "toSeq")(made)

    def texts(self, texts: Sequence[str]) -> Any:
        """A Java array of some texts without NUL: handed over as one, since a call for each of many takes seconds."""
        return self.static("java.util.regex.Pattern", "compile")(_END).split(_END.join(texts), -1)

    def texts_of(self, array: Any) -> list[str]:
        """The texts of a Java array, without NUL and not empty; fetched as one."""
        joined: str = self.static("org.apache.hadoop.util.StringUtils", "join")(_END, array)
        return joined.split(_END) if joined else []

    @cached_property
    def none(self) -> Any:
        """An empty Scala ``Option``."""
        return self.static("scala.Option", "empty")()

    def option(self, value: Any) -> Any:
        """A Scala ``Option``: empty for None."""
        return self.none if value is None else self.static("scala.Option", "apply")(value)


@lru_cache(maxsize=2)
def _of_jvm(jvm: Any) -> Java:
    return Java(jvm)


def _keep_found(jvm: Any) -> None:
    """Keep the classes that PySpark asks for by their short names with every call.

    The JVM looks for such a name in each imported package, and so in all its jars, every time: a tenth of the time of
    a small INSERT.
    """
    for name in _ASKED_BY_PYSPARK:
        found = getattr(jvm, name)
        if isinstance(found, JavaClass):
            setattr(jvm, name, found)
