"""Random programs of statements: what each engine is told, and what an oracle makes of it."""
