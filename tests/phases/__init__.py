"""Phases, not luck: a statement is stopped between any two of its steps while another one runs.

For an ordered pair of statements the first one runs in a session, and is stopped at one of its phases: before a call of
the metastore or of the file system, or behind the last one. There the second statement runs whole in another session,
on the same warehouse; where it has to wait for a lock that the first one holds, the first one goes on, and the second
follows. What comes out must be what one of the serial orders gives, or one of both ended in an error that says "run it
again" and has changed nothing.

* :mod:`tests.phases.statements`: what runs.
* :mod:`tests.phases.warehouses`: the tables that it runs on, and what is looked at afterwards.
* :mod:`tests.phases.steps`: where a statement can be stopped.
* :mod:`tests.phases.encounter`: two statements, one of which is stopped for the other.
* :mod:`tests.phases.verdict`: which outcomes are legal.
* :mod:`tests.phases.matrix`: all phases of a pair, and the serial orders that they are judged by.
"""
