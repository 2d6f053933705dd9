"""A client of HiveServer2: statements in, rows out."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from typing import Any


class HiveError(Exception):
    """Raised when HiveServer2 refuses a statement.

    Attributes:
        message: What it says.
        code: Hive's error code (``ErrorMsg``), where it gives one.
        sqlstate: The SQLSTATE, where it gives one.
    """

    def __init__(self, message: str, code: int | None = None, sqlstate: str | None = None) -> None:
        super().__init__(f"{message} (error {code}, SQLSTATE {sqlstate})")
        self.message = message
        self.code = code
        self.sqlstate = sqlstate


class Hive:
    """A session in HiveServer2, without log-in. Not for several threads at once: each needs a session of its own.

    Attributes:
        statements: How many statements it has run, refused ones included.
    """

    def __init__(
        self,
        port: int,
        host: str = "127.0.0.1",
        *,
        database: str = "default",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Open a session.

        Args:
            port: HiveServer2's port.
            host: HiveServer2's host.
            database: The database that unqualified names are looked up in.
            settings: Hive's settings for this session.
        """
        from pyhive import hive

        self.statements = 0
        self._connection = hive.Connection(
            host=host,
            port=port,
            username=getpass.getuser(),
            database=database,
            auth="NONE",
            configuration=dict(settings or {}),
        )

    def run(self, sql: str) -> list[tuple[Any, ...]] | None:
        """Run one statement.

        Returns:
            Its rows, None if the statement has none to give. Values are what pyhive makes of them: decimals, but
            structs, arrays and maps as JSON text, ``ROW__ID`` among them.

        Raises:
            HiveError: When Hive refuses the statement or fails in it.
        """
        from pyhive import exc

        self.statements += 1
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql)
            return None if cursor.description is None else cursor.fetchall()
        except exc.OperationalError as e:
            status = getattr(e.args[0], "status", None) if e.args else None
            if status is None:
                raise HiveError(str(e)) from e
            raise HiveError(status.errorMessage, status.errorCode, status.sqlState) from e
        finally:
            cursor.close()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Hive:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
