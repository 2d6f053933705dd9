"""The standard streams of a command: such as are closed, and such as cannot be written to."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class OutputFailed(OSError):
    """Standard output cannot be written to: its device is full, its file closed, or its encoding lacks a character."""


class StandardOutput:
    """Standard output, whose errors are known from those of other files: :class:`OutputFailed`; a reader that is gone
    is a ``BrokenPipeError``, as ever."""

    def write(self, text: str) -> None:
        """Raises: OutputFailed."""
        try:
            sys.stdout.write(text)
        except (OSError, UnicodeEncodeError) as e:
            raise _told(e) from None

    def flush(self) -> None:
        """Raises: OutputFailed."""
        try:
            sys.stdout.flush()
        except OSError as e:
            raise _told(e) from None


def _told(error: OSError | UnicodeEncodeError) -> OSError:
    if isinstance(error, BrokenPipeError):
        return error
    reason: object = error
    if isinstance(error, OSError):
        reason = error.strerror or error
        _drop_the_rest()
    return OutputFailed(f"standard output cannot be written: {reason}")


def _drop_the_rest() -> None:
    """What is still in the buffer would fail again as Python ends, with another exit code."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def open_closed() -> None:
    """Put the null device into the place of standard streams that are closed, as under some daemons.

    Python prints nothing then, but the next files that are opened would get their numbers: those of tables and of the
    store, into which other processes, such as Spark's, would print.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


class Command(click.Command):
    """A command that ends with exit code 1 and one line where an operation of the system's fails; with no line where
    nobody reads what it prints."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        open_closed()
        try:
            try:
                return super().main(*arguments, **options)
            finally:
                StandardOutput().flush()
        except BrokenPipeError:
            _drop_the_rest()
        except OSError as e:
            click.echo(f"acidsql: {e}", err=True)
        sys.exit(1)


class Group(Command, click.Group):
    """Such a command with others below it."""
