"""Statements that define databases, tables, views, columns and partitions."""
