"""Statements that only look: SHOW, DESCRIBE, EXPLAIN."""
