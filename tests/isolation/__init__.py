"""Isolation, tested by histories: what sessions did at the same time and what they saw, and a checker that judges."""
