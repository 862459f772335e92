"""What a link of the lab wrote down, read from its bytes (docs/topology.md, "What a link writes
down") and by nothing of neph's: the true round trip of each message, and which path it took.
"""

import statistics
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEADER_BYTES = 64
# kind, direction, verdict, protocol, length, arrival, due, left, hash, TCP sequence number,
# IP id, source port, destination port, path, flags, flipped bit.
RECORD = struct.Struct("<4BI3qQI3H2BHxx")
PACKET, UDP, COPY, ON_A_PATH = 1, 17, 1, 8
# Longer than a reflector takes to answer, shorter than two messages of a flow are apart.
THINKING_NS = 100_000_000
BIN_NS = 100_000_000
# A queue is what makes half of the packets of a tenth of a second this late.
QUEUE_NS = 1_000_000


@dataclass(frozen=True)
class Passed:
    """A packet that came to the link at `arrival`; `left` is 0 where it never did."""

    arrival: int
    left: int
    path: int


@dataclass(frozen=True)
class Sample:
    """A message: when it came to the link, its path there, and the round trip by the link's
    moments; None where request or reply were lost."""

    sent: int
    path: int
    trip: int | None


@dataclass
class Segment:
    """A time that a flow was on one path there."""

    path: int
    begin: int
    end: int
    answered: int = 0


@dataclass(frozen=True)
class Truth:
    """What the link did to the flows of one port."""

    samples: dict[int, list[Sample]]
    # Times at which packets were late, for a queue or because the machine was: (from, until).
    queues: list[tuple[int, int]]

    @property
    def end(self) -> int:
        """When the last message came."""
        return max(samples[-1].sent for samples in self.samples.values())

    def levels(self) -> dict[int, float]:
        """The median round trip over each path."""
        trips: dict[int, list[int]] = defaultdict(list)
        for samples in self.samples.values():
            for sample in samples:
                if sample.trip is not None:
                    trips[sample.path].append(sample.trip)
        return {path: statistics.median(each) for path, each in sorted(trips.items())}

    def segments(self, port: int) -> list[Segment]:
        """The paths of a flow, one after the other: two neighbours differ."""
        found: list[Segment] = []
        for sample in self.samples[port]:
            if not found or found[-1].path != sample.path:
                found.append(Segment(sample.path, sample.sent, sample.sent))
            found[-1].end = sample.sent
            found[-1].answered += sample.trip is not None
        return found


def packets(file: Path) -> Iterator[tuple]:
    """Its packets, copies aside, as RECORD has them."""
    content = file.read_bytes()
    if content[:8] != b"NEPHTRU2":
        raise ValueError(f"{file} is no record of a link, version 2")
    if int.from_bytes(content[12:16], "little") != 1:
        raise ValueError(f"{file} has not every packet; record without --every")
    whole = (len(content) - HEADER_BYTES) // RECORD.size * RECORD.size
    body = memoryview(content)[HEADER_BYTES : HEADER_BYTES + whole]
    for record in RECORD.iter_unpack(body):
        if record[0] == PACKET and not record[14] & COPY:
            yield record


def read(file: Path, port: int) -> Truth:
    """The flows over UDP from `a` to this port of `b`."""
    ways: list[dict[int, list[Passed]]] = [defaultdict(list), defaultdict(list)]
    for record in packets(file):
        direction, protocol, arrival, left = record[1], record[3], record[5], record[7]
        source, destination, path, flags = record[11], record[12], record[13], record[14]
        if protocol != UDP or port != (destination, source)[direction]:
            continue
        own = (source, destination)[direction]
        # What was dropped before it took a path is on none: 255.
        taken = path if flags & ON_A_PATH else 255
        ways[direction][own].append(Passed(arrival, left, taken))
    samples = {own: _samples(there, ways[1][own]) for own, there in sorted(ways[0].items())}
    return Truth(samples, _queues(ways))


def _samples(there: list[Passed], back: list[Passed]) -> list[Sample]:
    """Joins requests and replies: a reflector answers in the order in which requests come."""
    replies = sorted(back, key=lambda packet: packet.arrival)
    trips: dict[int, int] = {}
    at = 0
    for request in sorted((p for p in there if p.left), key=lambda packet: packet.left):
        while at < len(replies) and replies[at].arrival < request.left:
            at += 1
        if at == len(replies) or replies[at].arrival - request.left > THINKING_NS:
            continue
        reply = replies[at]
        at += 1
        if reply.left:
            both = request.left - request.arrival + reply.left - reply.arrival
            trips[request.arrival] = both
    ordered = sorted((p for p in there if p.path != 255), key=lambda packet: packet.arrival)
    return [Sample(p.arrival, p.path, trips.get(p.arrival)) for p in ordered]


def _queues(ways: list[dict[int, list[Passed]]]) -> list[tuple[int, int]]:
    """When packets were late, either way; what is less than a second apart is one."""
    late: set[int] = set()
    for way in ways:
        stays: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for packets in way.values():
            for packet in packets:
                if packet.left:
                    stays[packet.path].append((packet.arrival, packet.left - packet.arrival))
        bins: dict[int, list[float]] = defaultdict(list)
        for each in stays.values():
            usual = statistics.median(stay for _, stay in each)
            for arrival, stay in each:
                bins[arrival // BIN_NS].append(stay - usual)
        late |= {at for at, excess in bins.items() if statistics.median(excess) > QUEUE_NS}
    queues: list[tuple[int, int]] = []
    for at in sorted(late):
        begin, end = at * BIN_NS, (at + 1) * BIN_NS
        if queues and begin - queues[-1][1] < 1_000_000_000:
            queues[-1] = (queues[-1][0], end)
        else:
            queues.append((begin, end))
    return queues
