"""The version of the compactor, as recorded in the queue."""

from __future__ import annotations

from acidsql import __version__

VERSION = f"acidsql {__version__}"
"""Hive's version of a worker or initiator; with a name, because Hive's workers may serve the same queue."""
