"""The life of a transaction: open, lock, commit or abort; ABORT TRANSACTIONS."""
