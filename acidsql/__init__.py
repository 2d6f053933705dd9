"""Hive full-ACID tables, writable and readable from PySpark through ``acid.sql("…")``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from acidsql.errors import AcidError

if TYPE_CHECKING:
    from acidsql.session import AcidSession, connect

__version__ = "0.1.0"
__all__ = ["AcidError", "AcidSession", "__version__", "connect", "load_ipython_extension"]


def __getattr__(name: str) -> Any:
    """Import the session, and with it PySpark, on first use: ``acidsql dump`` needs neither."""
    if name in ("AcidSession", "connect"):
        from acidsql import session

        return getattr(session, name)
    raise AttributeError(f"module 'acidsql' has no attribute {name!r}")


def load_ipython_extension(ipython: Any) -> None:
    """Entry point of ``%load_ext acidsql``."""
    from acidsql.notebook import load_ipython_extension as load

    load(ipython)
