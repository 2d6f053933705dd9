"""Name resolution in one snapshot: the statement context, and plans over it."""
