"""Read-only statements about metadata: SHOW, DESCRIBE, EXPLAIN."""
