"""Statements that write rows: INSERT, UPDATE, DELETE, MERGE, TRUNCATE, LOAD DATA."""
