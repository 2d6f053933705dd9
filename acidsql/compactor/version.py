"""Who compacts, as the queue remembers it."""

from __future__ import annotations

from acidsql import __version__

VERSION = f"acidsql {__version__}"
"""What Hive calls the version of a worker or an initiator. With the name: Hive's own may serve the same queue."""
