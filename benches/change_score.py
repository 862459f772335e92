"""Path changes that a detector told, held against those that the link made.

A told change is right if its flow came to that level within the margins: at most `time_ns` before or
after its date (or since the queue began, where packets stood in one by the record); the level after,
and one that the flow had since what was told last before, within `level_ns`. One whose date is more
than a second off is counted as such.
Each change of the link can be told once. A change has to be told if the levels are more than 0.5 ms
apart and the stays before and after have four messages or more that were answered.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from link_record import Segment, Truth

TOLERANCE_NS = 500_000
LEAST_ANSWERED = 4
SECOND = 1_000_000_000
# From the send to the link, at most.
SAME_MESSAGE_NS = 1_000_000


@dataclass(frozen=True)
class Told:
    """A path change as a detector tells it; `written` is when the line was, where there was one."""

    port: int
    at: int
    certain: int
    before: int
    after: int
    written: int | None = None


@dataclass(frozen=True)
class Margins:
    """How exactly a change has to be told."""

    time_ns: int
    level_ns: int


@dataclass
class Score:
    """What came of all flows."""

    told: int = 0
    due: int = 0
    right: int = 0
    misdated: int = 0
    found: int = 0
    # From the change to the reply that made it certain, and to the line that told it.
    delays: list[int] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """The share of told changes that were right."""
        return self.right / self.told if self.told else 1.0

    @property
    def recall(self) -> float:
        """The share of changes that had to be told, and were."""
        return self.found / self.due if self.due else 1.0


@dataclass(frozen=True)
class _Flow:
    """One flow's truth, with what it is judged by."""

    port: int
    segments: list[Segment]
    levels: dict[int, float]
    truth: Truth
    margins: Margins

    def level(self, index: int) -> float:
        return self.levels[self.segments[index].path]

    def near(self, index: int, level: int) -> bool:
        return abs(self.level(index) - level) <= self.margins.level_ns

    def reach(self, at: int) -> int:
        """How long before its date a change may have been."""
        reach = at - self.margins.time_ns
        for begin, end in reversed(self.truth.queues):
            if begin <= at and end >= reach:
                reach = min(reach, begin - self.margins.time_ns)
        return reach

    def is_queue(self, begin: int, end: int) -> bool:
        """Whether packets stood in a queue in between."""
        return any(b <= end and e >= begin for b, e in self.truth.queues)


def score(truth: Truth, told: Sequence[Told], margins: Margins) -> Score:
    """All flows of the record."""
    levels = truth.levels()
    by_port: dict[int, list[Told]] = {port: [] for port in truth.samples}
    result = Score()
    for change in sorted(told, key=lambda change: change.at):
        result.told += 1
        if change.port in by_port:
            by_port[change.port].append(change)
        else:
            result.false.append(f"port {change.port}: no such flow on record")
    for port, changes in by_port.items():
        _score(_Flow(port, truth.segments(port), levels, truth, margins), changes, result)
    return result


def _score(flow: _Flow, told: list[Told], result: Score) -> None:
    matched: dict[int, Told] = {}
    last = 0
    for change in told:
        index = _match(flow, change, last, matched)
        if index is None:
            result.false.append(_why_false(flow, change, matched))
            continue
        matched[index] = change
        last = index
        result.right += 1
        begin = flow.segments[index].begin
        result.misdated += abs(begin - change.at) > SECOND
    for indices in _due(flow):
        result.due += 1
        hit = next((index for index in indices if index in matched), None)
        if hit is None:
            result.missed.append(_why_missed(flow, indices, told))
            continue
        result.found += 1
        begin = flow.segments[hit].begin
        result.delays.append(matched[hit].certain - begin)
        if matched[hit].written is not None:
            result.written.append(matched[hit].written - begin)


def _match(flow: _Flow, told: Told, last: int, matched: dict[int, Told]) -> int | None:
    latest = told.at + flow.margins.time_ns
    fits = [
        index
        for index in range(max(last, 1), len(flow.segments))
        if index not in matched
        and flow.reach(told.at) <= flow.segments[index].begin <= latest
        and flow.near(index, told.after)
        and any(flow.near(before, told.before) for before in range(last, index))
    ]
    return min(fits, key=lambda index: abs(flow.segments[index].begin - told.at), default=None)


def _due(flow: _Flow) -> list[list[int]]:
    """Changes that have to be told: of each the segments that it led to, one after the other."""
    stays: list[list[int]] = []
    for index, segment in enumerate(flow.segments):
        if segment.answered < LEAST_ANSWERED:
            continue
        if stays and abs(flow.level(stays[-1][-1]) - flow.level(index)) <= TOLERANCE_NS:
            stays[-1].append(index)
        else:
            stays.append([index])
    return stays[1:]


def _ms(nanos: float) -> str:
    return f"{nanos / 1e6:.2f} ms"


def _why_false(flow: _Flow, told: Told, matched: dict[int, Told]) -> str:
    what = f"port {flow.port}: {_ms(told.before)} to {_ms(told.after)}"
    near = [i for i in range(1, len(flow.segments)) if flow.near(i, told.after)]
    nearest = min(near, key=lambda i: abs(flow.segments[i].begin - told.at), default=None)
    if flow.is_queue(told.at - SECOND, told.certain):
        what += "; packets stood in a queue, or the machine was late"
    what += _on_record(flow, told)
    if nearest is None:
        return f"{what}; the flow never came to that level"
    away = (told.at - flow.segments[nearest].begin) / SECOND
    again = ", told before" if nearest in matched else ""
    side = "before" if away >= 0 else "after"
    return f"{what}; the flow came to that level {abs(away):.2f} s {side} its date{again}"


def _on_record(flow: _Flow, told: Told) -> str:
    """What the round trips were that it was told by: the link itself may have been late."""
    trips = [
        sample.trip
        for sample in flow.truth.samples[flow.port]
        if told.at - SAME_MESSAGE_NS <= sample.sent <= told.certain and sample.trip is not None
    ]
    return f"; {_ms(statistics.median(trips))} on the link itself" if trips else ""


def _why_missed(flow: _Flow, indices: list[int], told: list[Told]) -> str:
    first, last = flow.segments[indices[0]], flow.segments[indices[-1]]
    answered = sum(flow.segments[index].answered for index in indices)
    left = (flow.truth.end - first.begin) / SECOND
    what = f"port {flow.port}: to {_ms(flow.level(indices[0]))}, {answered} answered"
    if left < 5:
        what += f"; {left:.1f} s before the end"
    if flow.is_queue(first.begin, last.end):
        what += "; packets stood in a queue, or the machine was late"
    meant = [c for c in told if flow.near(indices[0], c.after) and c.at >= first.begin]
    if meant:
        late = (meant[0].at - first.begin) / SECOND
        what += f"; the next told change to that level is dated {late:.2f} s later"
    return what
