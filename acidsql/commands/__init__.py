"""What each statement does: one module a kind, found through the table in :mod:`acidsql.commands.registry`."""
