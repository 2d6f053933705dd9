"""USE and SET."""
