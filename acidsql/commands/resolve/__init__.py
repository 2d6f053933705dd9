"""What names mean, in one snapshot: the statement context, and plans over it."""
