"""Compares the path changes that a detector reported with the changes that the link made.

A reported change is correct if its flow came to that level within the margins: at most `time_ns` before or
after its date (or since the queue began, if the record shows a queue then). Both the level after, and a
level of the flow since its previous reported change, must agree within `level_ns`. A correct change whose
date is more than a second off counts as misdated.
Each change of the link can be reported once. A report is expected if the levels are more than 0.5 ms
apart and the stays before and after have at least four answered messages.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from link_record import Segment, Truth

TOLERANCE_NS = 500_000
MIN_ANSWERED = 4
SECOND = 1_000_000_000
# From the send to the link, at most.
SAME_MESSAGE_NS = 1_000_000


@dataclass(frozen=True)
class DetectedChange:
    """A path change as a detector reports it. `written_at`: when its line was written, if it has one."""

    port: int
    changed_at: int
    confirmed_at: int
    level_before: int
    level_after: int
    written_at: int | None = None


@dataclass(frozen=True)
class Margins:
    """How exact a reported change must be."""

    time_ns: int
    level_ns: int


@dataclass
class Score:
    """The result over all flows."""

    reported: int = 0
    expected: int = 0
    correct: int = 0
    misdated: int = 0
    detected: int = 0
    # From the change to the reply that confirmed it, and to the line that reports it.
    confirmation_delays: list[int] = field(default_factory=list)
    write_delays: list[int] = field(default_factory=list)
    false_reports: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    @property
    def precision(self) -> float:
        """The share of reported changes that are correct."""
        return self.correct / self.reported if self.reported else 1.0

    @property
    def recall(self) -> float:
        """The share of expected changes that were reported."""
        return self.detected / self.expected if self.expected else 1.0

    def as_json(self) -> dict:
        """The counts and lists by the keys of the JSON file."""
        return {
            **{"told": self.reported, "due": self.expected, "right": self.correct},
            **{"misdated": self.misdated, "found": self.detected},
            **{"delays": self.confirmation_delays, "written": self.write_delays},
            **{"false": self.false_reports, "missed": self.missed},
        }


@dataclass(frozen=True)
class _Flow:
    """The true path segments of one flow, and the margins."""

    port: int
    segments: list[Segment]
    levels: dict[int, float]
    truth: Truth
    margins: Margins

    def level(self, index: int) -> float:
        return self.levels[self.segments[index].path]

    def has_level(self, index: int, level: int) -> bool:
        return abs(self.level(index) - level) <= self.margins.level_ns

    def earliest_match(self, changed_at: int) -> int:
        """The earliest change of the link that matches a report with this date."""
        earliest = changed_at - self.margins.time_ns
        for begin, end in reversed(self.truth.queues):
            if begin <= changed_at and end >= earliest:
                earliest = min(earliest, begin - self.margins.time_ns)
        return earliest

    def overlaps_queue(self, begin: int, end: int) -> bool:
        """Whether packets waited in a queue between these times."""
        return any(queue_begin <= end and queue_end >= begin for queue_begin, queue_end in self.truth.queues)


def score(truth: Truth, changes: Sequence[DetectedChange], margins: Margins) -> Score:
    """Scores all flows of the record."""
    levels = truth.levels()
    by_port: dict[int, list[DetectedChange]] = {port: [] for port in truth.samples}
    result = Score()
    for change in sorted(changes, key=lambda change: change.changed_at):
        result.reported += 1
        if change.port in by_port:
            by_port[change.port].append(change)
        else:
            result.false_reports.append(f"port {change.port}: no such flow on record")
    for port, flow_changes in by_port.items():
        _score(_Flow(port, truth.segments(port), levels, truth, margins), flow_changes, result)
    return result


def _score(flow: _Flow, changes: list[DetectedChange], result: Score) -> None:
    matched: dict[int, DetectedChange] = {}
    last = 0
    for change in changes:
        index = _match(flow, change, last, matched)
        if index is None:
            result.false_reports.append(_why_false(flow, change, matched))
            continue
        matched[index] = change
        last = index
        result.correct += 1
        begin = flow.segments[index].begin
        result.misdated += abs(begin - change.changed_at) > SECOND
    for indices in _expected_changes(flow):
        result.expected += 1
        detected_index = next((index for index in indices if index in matched), None)
        if detected_index is None:
            result.missed.append(_why_missed(flow, indices, changes))
            continue
        result.detected += 1
        begin = flow.segments[detected_index].begin
        result.confirmation_delays.append(matched[detected_index].confirmed_at - begin)
        if matched[detected_index].written_at is not None:
            result.write_delays.append(matched[detected_index].written_at - begin)


def _match(flow: _Flow, change: DetectedChange, last: int, matched: dict[int, DetectedChange]) -> int | None:
    latest = change.changed_at + flow.margins.time_ns
    candidates = [
        index
        for index in range(max(last, 1), len(flow.segments))
        if index not in matched
        and flow.earliest_match(change.changed_at) <= flow.segments[index].begin <= latest
        and flow.has_level(index, change.level_after)
        and any(flow.has_level(before, change.level_before) for before in range(last, index))
    ]
    return min(candidates, key=lambda index: abs(flow.segments[index].begin - change.changed_at), default=None)


def _expected_changes(flow: _Flow) -> list[list[int]]:
    """The expected changes. Each is the list of consecutive segments that it led to."""
    stays: list[list[int]] = []
    for index, segment in enumerate(flow.segments):
        if segment.answered < MIN_ANSWERED:
            continue
        if stays and abs(flow.level(stays[-1][-1]) - flow.level(index)) <= TOLERANCE_NS:
            stays[-1].append(index)
        else:
            stays.append([index])
    return stays[1:]


def _ms(nanos: float) -> str:
    return f"{nanos / 1e6:.2f} ms"


def _why_false(flow: _Flow, change: DetectedChange, matched: dict[int, DetectedChange]) -> str:
    reason = f"port {flow.port}: {_ms(change.level_before)} to {_ms(change.level_after)}"
    same_level = [i for i in range(1, len(flow.segments)) if flow.has_level(i, change.level_after)]
    nearest = min(same_level, key=lambda i: abs(flow.segments[i].begin - change.changed_at), default=None)
    if flow.overlaps_queue(change.changed_at - SECOND, change.confirmed_at):
        reason += "; packets stood in a queue, or the machine was late"
    reason += _median_rtt_on_link(flow, change)
    if nearest is None:
        return f"{reason}; the flow never came to that level"
    seconds_off = (change.changed_at - flow.segments[nearest].begin) / SECOND
    duplicate_note = ", told before" if nearest in matched else ""
    side = "before" if seconds_off >= 0 else "after"
    return f"{reason}; the flow came to that level {abs(seconds_off):.2f} s {side} its date{duplicate_note}"


def _median_rtt_on_link(flow: _Flow, change: DetectedChange) -> str:
    """The median of the round trips behind a report: the link itself may have been late."""
    round_trips = [
        sample.round_trip
        for sample in flow.truth.samples[flow.port]
        if change.changed_at - SAME_MESSAGE_NS <= sample.sent <= change.confirmed_at and sample.round_trip is not None
    ]
    return f"; {_ms(statistics.median(round_trips))} on the link itself" if round_trips else ""


def _why_missed(flow: _Flow, indices: list[int], changes: list[DetectedChange]) -> str:
    first, last = flow.segments[indices[0]], flow.segments[indices[-1]]
    answered = sum(flow.segments[index].answered for index in indices)
    seconds_to_end = (flow.truth.end - first.begin) / SECOND
    reason = f"port {flow.port}: to {_ms(flow.level(indices[0]))}, {answered} answered"
    if seconds_to_end < 5:
        reason += f"; {seconds_to_end:.1f} s before the end"
    if flow.overlaps_queue(first.begin, last.end):
        reason += "; packets stood in a queue, or the machine was late"
    later_changes = [c for c in changes if flow.has_level(indices[0], c.level_after) and c.changed_at >= first.begin]
    if later_changes:
        late = (later_changes[0].changed_at - first.begin) / SECOND
        reason += f"; the next told change to that level is dated {late:.2f} s later"
    return reason
