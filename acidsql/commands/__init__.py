"""The statements: one module per kind, dispatched by the table in :mod:`acidsql.commands.registry`."""
