"""Quantiles, counts and Markdown tables."""

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], p: float) -> float:
    """The p-quantile by linear interpolation (Hyndman and Fan's type 7)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * p
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """The least-squares slope of ys over xs."""
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    over = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return over / sum((x - mean_x) ** 2 for x in xs)


def micros(nanos: float | None, digits: int = 1) -> str:
    """Nanoseconds as microseconds; a dash where there is no figure."""
    return "-" if nanos is None else f"{nanos / 1000:.{digits}f}"


def signed_micros(nanos: float | None) -> str:
    """Nanoseconds as microseconds with a sign."""
    return "-" if nanos is None else f"{nanos / 1000:+.1f}"


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it reads as text too."""
    widths = [max(len(row[at]) for row in (heading, *rows)) for at in range(len(heading))]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join((line(heading), rule, *(line(row) for row in rows)))
