"""Which anomalies a history shows that snapshot isolation does not allow.

Transactions depend on one another: one has written after another (``ww``), has read what another wrote (``wr``), has
read what another has overwritten (``rw``), or began after another had ended (``rt``). A history is one of snapshot
isolation where no cycle of dependencies has its ``rw`` edges apart from each other, that is where
``(ww + wr + rt) ; rw?`` has no cycle (Cerone and Gotsman, "Analysing Snapshot Isolation"; Adya's G0, G1 and G-SI). With
real time in it, a snapshot must be one of the moment at which its transaction began, or later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tests.isolation.history import Append, Outcome, Read, Txn


@dataclass(frozen=True)
class Anomaly:
    """What must not be.

    Attributes:
        kind: Its name: ``G0`` (dirty writes), ``G1a`` (read of what was rolled back), ``G1b`` (read of a part of a
            transaction), ``G1c`` (transactions that have read one another), ``G-SI`` (lost updates, read skew, long
            forks, stale snapshots), ``write skew`` (only where serializability is asked for), ``lost append``,
            ``internal`` (a transaction that does not see itself, or two states), ``order``, ``garbage``, ``duplicate``.
        txns: The transactions, by their numbers; of a cycle, in its order.
        text: What was seen.
    """

    kind: str
    txns: tuple[int, ...]
    text: str


def anomalies(history: Sequence[Txn], *, serializable: bool = False) -> list[Anomaly]:
    """All that a history shows; cycles: one of each group of transactions that depend on one another.

    Args:
        history: The transactions; a last one that reads all lists finds what was lost.
        serializable: Whether ``rw`` edges beside each other are not allowed either (write skew).
    """
    known = _Known(history)
    return [*known.problems, *_cycles(known, serializable)]


@dataclass
class _Known:
    """What a history tells of its lists."""

    history: Sequence[Txn]
    problems: list[Anomaly] = field(default_factory=list)
    writers: dict[tuple[str, int], Txn] = field(default_factory=dict)
    versions: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """The longest list of each key that was read outside of the transactions that wrote it."""

    def __post_init__(self) -> None:
        for txn in self.history:
            for one in txn.appends:
                self.writers[one.key, one.value] = txn
        for txn in self.history:
            self._look_inside(txn)
        seen = {(key, value) for key, values in self.versions.items() for value in values}
        self.committed = [
            txn
            for txn in self.history
            if txn.outcome is Outcome.COMMITTED
            or (txn.outcome is Outcome.UNKNOWN and any((a.key, a.value) in seen for a in txn.appends))
        ]
        self._look_for_lost(seen)

    def _found(self, kind: str, text: str, *txns: Txn) -> None:
        self.problems.append(Anomaly(kind, tuple(t.number for t in txns), text))

    def _look_inside(self, txn: Txn) -> None:
        """What one transaction has seen: its reads by themselves, and beside each other."""
        own: dict[str, list[int]] = defaultdict(list)
        first: dict[str, tuple[int, ...]] = {}
        for one in txn.operations:
            if isinstance(one, Append):
                own[one.key].append(one.value)
                continue
            mine = own[one.key]
            if mine and list(one.values[-len(mine) :]) != mine:
                self._found("internal", f"{one} lacks its own {mine}", txn)
                continue
            outside = one.values[: len(one.values) - len(mine)]
            if first.setdefault(one.key, outside) != outside:
                self._found("internal", f"{one.key} was {first[one.key]}, then {outside}", txn)
            self._look_at(txn, one.key, outside)

    def _look_at(self, reader: Txn, key: str, values: tuple[int, ...]) -> None:
        if len(set(values)) < len(values):
            self._found("duplicate", f"{key} {values}", reader)
        for value in values:
            writer = self.writers.get((key, value))
            if writer is None or writer is reader:
                self._found("garbage", f"{value} in {key} {values}", reader)
            elif writer.outcome is Outcome.ABORTED:
                self._found("G1a", f"{value} in {key} {values}", writer, reader)
            elif not {a.value for a in writer.appends if a.key == key} <= set(values):
                self._found("G1b", f"{key} {values}", writer, reader)
        longest = self.versions.get(key, ())
        shorter, longer = sorted((values, longest), key=len)
        if longer[: len(shorter)] != shorter:
            self._found("order", f"{key} {values}, elsewhere {longest}", reader)
        else:
            self.versions[key] = longer

    def _look_for_lost(self, seen: set[tuple[str, int]]) -> None:
        last = max(self.history, key=lambda txn: txn.began, default=None)
        for txn in self.history:
            for one in txn.appends:
                final = last is not None and txn.ended < last.began and any(r.key == one.key for r in last.reads)
                if txn.outcome is Outcome.COMMITTED and final and (one.key, one.value) not in seen:
                    self._found("lost append", f"{one}", txn)


Edges = Mapping[int, Mapping[int, str]]
"""From a transaction to those that come after it, and why."""


def _cycles(known: _Known, serializable: bool) -> Iterator[Anomaly]:
    by_number = {txn.number: txn for txn in known.committed}
    ww, wr, rw = _dependencies(known, by_number)
    rt = _real_time(known.committed)
    for kind, edges in (
        ("G0", _joined(ww)),
        ("G1c", _joined(ww, wr)),
        ("G-SI", _followed(_joined(ww, wr, rt), rw)),
        *([("write skew", _joined(ww, wr, rt, rw))] if serializable else []),
    ):
        found = list(_one_of_each(edges))
        for cycle in found:
            text = " ".join(f"T{a} -{edges[a][b]}-> T{b}" for a, b in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
            yield Anomaly(kind, tuple(cycle), text)
        if found:
            return


def _dependencies(known: _Known, committed: Mapping[int, Txn]) -> tuple[Edges, Edges, Edges]:
    ww, wr, rw = (defaultdict[int, dict[int, str]](dict) for _ in range(3))

    def add(edges: dict[int, dict[int, str]], source: Txn | None, target: Txn | None, why: str) -> None:
        if source is None or target is None or source is target:
            return
        if source.number in committed and target.number in committed:
            edges[source.number].setdefault(target.number, why)

    for key, values in known.versions.items():
        writers = [known.writers.get((key, value)) for value in values]
        for before, after in pairwise(writers):
            add(ww, before, after, f"ww {key}")
        for txn in committed.values():
            for length in _read_lengths(txn, key):
                if length:
                    add(wr, writers[min(length, len(writers)) - 1], txn, f"wr {key}")
                following = next((w for w in writers[length:] if w is not txn), None)
                add(rw, txn, following, f"rw {key}")
    return ww, wr, rw


def _read_lengths(txn: Txn, key: str) -> Iterator[int]:
    """How much of a list its reads have seen that others had written."""
    own = 0
    for one in txn.operations:
        if isinstance(one, Read) and one.key == key:
            yield len(one.values) - own
        elif isinstance(one, Append) and one.key == key:
            own += 1


def _real_time(txns: Sequence[Txn]) -> Edges:
    return {a.number: {b.number: "rt" for b in txns if a.ended < b.began} for a in txns}


def _joined(*kinds: Edges) -> dict[int, dict[int, str]]:
    made = defaultdict[int, dict[int, str]](dict)
    for edges in kinds:
        for source, targets in edges.items():
            for target, why in targets.items():
                made[source].setdefault(target, why)
    return made


def _followed(first: Edges, then: Edges) -> dict[int, dict[int, str]]:
    """The edges of ``first``, and those that one of ``then`` follows."""
    made = _joined(first)
    for source, targets in first.items():
        for middle, why in targets.items():
            for target, more in then.get(middle, {}).items():
                made[source].setdefault(target, f"{why}, T{middle} {more}")
    return made


def _one_of_each(edges: Mapping[int, Mapping[int, str]]) -> Iterator[list[int]]:
    """A shortest cycle of each group of transactions that can be reached from one another."""
    for group in _components(edges):
        inside = set(group)
        cycles = [c for start in sorted(inside) if (c := _shortest(edges, start, inside)) is not None]
        if cycles:
            yield min(cycles, key=len)


def _shortest(edges: Mapping[int, Mapping[int, str]], start: int, inside: set[int]) -> list[int] | None:
    paths, reached = [[start]], {start}
    while paths:
        longer = []
        for path in paths:
            for target in edges.get(path[-1], {}):
                if target == start:
                    return path
                if target in inside and target not in reached:
                    reached.add(target)
                    longer.append([*path, target])
        paths = longer
    return None


def _components(edges: Mapping[int, Mapping[int, str]]) -> Iterator[list[int]]:
    """The strongly connected components (Kosaraju)."""
    nodes = sorted({*edges, *(target for targets in edges.values() for target in targets)})
    backwards = defaultdict[int, list[int]](list)
    for source, targets in edges.items():
        for target in targets:
            backwards[target].append(source)
    order = list(_finished(nodes, {source: list(targets) for source, targets in edges.items()}))
    seen = set[int]()
    for root in reversed(order):
        if root not in seen:
            yield list(_finished([root], backwards, seen))


def _finished(roots: Iterable[int], edges: Mapping[int, Sequence[int]], seen: set[int] | None = None) -> Iterator[int]:
    """Nodes in the order in which a search in depth leaves them."""
    seen = set() if seen is None else seen
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(edges.get(root, ())))]
        while stack:
            node, targets = stack[-1]
            target = next((t for t in targets if t not in seen), None)
            if target is None:
                stack.pop()
                yield node
            else:
                seen.add(target)
                stack.append((target, iter(edges.get(target, ()))))
