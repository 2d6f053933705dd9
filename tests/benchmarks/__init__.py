"""Benchmarks: run by hand, never by the test run (no module here is a test module)."""
