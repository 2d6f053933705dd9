"""Draws the curves of :mod:`tests.benchmarks.scale`; needs matplotlib (the extra ``bench``)."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

AXES = {
    "deltas": "open deltas",
    "partitions": "partitions",
    "deleted": "deleted rows, %",
    "rows": "rows",
    "history": "past transactions",
}
"""What grows, by the name of the curve."""
_LINEAR = ("deleted",)
_SIZE = (7.0, 4.2)
_DPI = 80
"""Small files: these pictures are committed."""


def read(path: Path) -> list[dict[str, Any]]:
    """The points of a file of results; of one that was measured several times the last."""
    lines = (json.loads(line) for line in path.read_text().splitlines())
    points = {(p["curve"], p["statement"], p["size"]): p for p in lines if p["kind"] == "point"}
    return list(points.values())


def draw(points: Iterable[Mapping[str, Any]], folder: Path) -> list[Path]:
    """One picture a curve: wall clock of each statement, and below it, thinner, the part of it that is planning.

    Returns:
        The pictures.

    Raises:
        ImportError: When matplotlib is not installed.
    """
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    curves: dict[str, dict[str, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        curves[point["curve"]][point["statement"]].append(point)
    made = []
    for curve, statements in curves.items():
        figure, axes = pyplot.subplots(figsize=_SIZE, dpi=_DPI)
        for number, (statement, found) in enumerate(statements.items()):
            ordered = sorted(found, key=lambda p: p["size"])
            sizes = [p["size"] for p in ordered]
            color = f"C{number}"
            axes.plot(sizes, [p["wall"] for p in ordered], "o-", color=color, markersize=3, label=statement)
            axes.plot(sizes, [p["planning"] for p in ordered], ":", color=color, linewidth=1)
        axes.set_yscale("log")
        for of_axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
            of_axis("{x:g}")
        if curve not in _LINEAR:
            _by_powers(axes, [p["size"] for found in statements.values() for p in found])
        axes.set_xlabel(AXES.get(curve, curve))
        axes.set_ylabel("seconds (dotted: planning)")
        axes.grid(visible=True, which="major", linewidth=0.4)
        axes.legend(fontsize=8)
        figure.tight_layout()
        path = folder / f"{curve}.png"
        figure.savefig(path)
        pyplot.close(figure)
        made.append(path)
    return made


def _by_powers(axes: Any, sizes: Sequence[int]) -> None:
    """Powers of ten; where nothing is among the sizes, the part up to the first of the others is linear."""
    if min(sizes) > 0:
        axes.set_xscale("log")
    elif max(sizes) > 0:
        axes.set_xscale("symlog", linthresh=min(s for s in sizes if s > 0))
        axes.set_xlim(left=-0.1 * min(s for s in sizes if s > 0))


def main() -> None:
    """Draw what was measured before."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scale_plot", description=__doc__)
    parser.add_argument("results", type=Path, help="a file that tests.benchmarks.scale has written")
    given = parser.parse_args()
    for path in draw(read(given.results), given.results.parent):
        print(path)


if __name__ == "__main__":
    main()
