"""From send times to lateness: the nominal grid that a sender evidently meant.

A sender's own first packet may itself be late, and its clock may run a little differently from the
capture's. So the grid is not laid through the first packet: message number i of n is taken to
have been due at origin + i x interval x (1 + rate), where that line is the lower envelope of the
send times: the edge of their lower convex hull that spans the middle message. No message lies
before the line, and the two that define it were late by nothing. A cost that every message pays alike
(the way from the program to the interface) is therefore not part of the lateness.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Largest relative error of an achieved rate that counts as kept.
TOLERANCE = 0.005


@dataclass(frozen=True)
class Lateness:
    """Achieved rate and lateness of the messages of one run."""

    # Messages a second, achieved.
    rate: float
    # Parts per million by which the sender's interval differs from the nominal one.
    skew_ppm: float
    # Each message's lateness, ns; empty where the rate was not kept.
    values: list[float]


def lateness(stamps_ns: Sequence[int], interval_ns: float) -> Lateness:
    """Send times, in order, against the grid of their nominal interval."""
    last = len(stamps_ns) - 1
    rate = last * 1e9 / (stamps_ns[-1] - stamps_ns[0])
    if abs(rate * interval_ns / 1e9 - 1) > TOLERANCE:
        return Lateness(rate, 0.0, [])
    residuals = [stamp - stamps_ns[0] - index * interval_ns for index, stamp in enumerate(stamps_ns)]
    left, right = _lower_hull_edge(residuals, last / 2)
    per_message = (residuals[right] - residuals[left]) / (right - left)
    values = [
        residual - residuals[left] - per_message * (index - left)
        for index, residual in enumerate(residuals)
    ]
    return Lateness(rate, per_message / interval_ns * 1e6, values)


def _lower_hull_edge(ys: Sequence[float], middle: float) -> tuple[int, int]:
    """The edge of the lower convex hull of (index, y) that spans `middle`."""
    hull: list[int] = []
    for index, y in enumerate(ys):
        while len(hull) >= 2 and _lies_above(hull[-2], hull[-1], index, ys):
            hull.pop()
        hull.append(index)
    for left, right in zip(hull, hull[1:], strict=False):
        if left <= middle <= right:
            return left, right
    raise ValueError("fewer than two messages")


def _lies_above(left: int, middle: int, right: int, ys: Sequence[float]) -> bool:
    """Whether the middle point lies on or above the line from left to right."""
    across = (ys[middle] - ys[left]) * (right - left)
    return across >= (ys[right] - ys[left]) * (middle - left)
