"""Transaction lifecycle: open, lock, commit or abort; ABORT TRANSACTIONS."""
