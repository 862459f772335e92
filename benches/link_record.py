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
PACKET, UDP, COPY, HAS_PATH = 1, 17, 1, 8
# Longer than a reflector takes to answer, shorter than two messages of a flow are apart.
MAX_REPLY_DELAY_NS = 100_000_000
BIN_NS = 100_000_000
# A queue is what makes half of the packets of a tenth of a second this late.
QUEUE_NS = 1_000_000


@dataclass(frozen=True)
class Passage:
    """A packet that came to the link at `arrival`; `left` is 0 where it never did."""

    arrival: int
    departure: int
    path: int


@dataclass(frozen=True)
class Sample:
    """A message: when it came to the link, its path there, and the round trip by the link's
    moments; None where request or reply were lost."""

    sent: int
    path: int
    round_trip: int | None


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
        round_trips: dict[int, list[int]] = defaultdict(list)
        for samples in self.samples.values():
            for sample in samples:
                if sample.round_trip is not None:
                    round_trips[sample.path].append(sample.round_trip)
        return {path: statistics.median(path_round_trips) for path, path_round_trips in sorted(round_trips.items())}

    def segments(self, port: int) -> list[Segment]:
        """The paths of a flow, one after the other: two neighbours differ."""
        found: list[Segment] = []
        for sample in self.samples[port]:
            if not found or found[-1].path != sample.path:
                found.append(Segment(sample.path, sample.sent, sample.sent))
            found[-1].end = sample.sent
            found[-1].answered += sample.round_trip is not None
        return found


def packets(file: Path) -> Iterator[tuple]:
    """Its packets, copies aside, as RECORD has them."""
    content = file.read_bytes()
    if content[:8] != b"NEPHTRU2":
        raise ValueError(f"{file} is no record of a link, version 2")
    if int.from_bytes(content[12:16], "little") != 1:
        raise ValueError(f"{file} has not every packet; record without --every")
    whole_bytes = (len(content) - HEADER_BYTES) // RECORD.size * RECORD.size
    body = memoryview(content)[HEADER_BYTES : HEADER_BYTES + whole_bytes]
    for record in RECORD.iter_unpack(body):
        if record[0] == PACKET and not record[14] & COPY:
            yield record


def read_truth(file: Path, port: int) -> Truth:
    """The flows over UDP from `a` to this port of `b`."""
    directions: list[dict[int, list[Passage]]] = [defaultdict(list), defaultdict(list)]
    for record in packets(file):
        direction, protocol, arrival, departure = record[1], record[3], record[5], record[7]
        source, destination, path, flags = record[11], record[12], record[13], record[14]
        if protocol != UDP or port != (destination, source)[direction]:
            continue
        client_port = (source, destination)[direction]
        # What was dropped before it took a path is on none: 255.
        path_taken = path if flags & HAS_PATH else 255
        directions[direction][client_port].append(Passage(arrival, departure, path_taken))
    forward, reverse = directions
    samples = {port: _samples(requests, reverse[port]) for port, requests in sorted(forward.items())}
    return Truth(samples, _queues(directions))


def _samples(requests: list[Passage], reverse_packets: list[Passage]) -> list[Sample]:
    """Joins requests and replies: a reflector answers in the order in which requests come."""
    replies = sorted(reverse_packets, key=lambda packet: packet.arrival)
    round_trips: dict[int, int] = {}
    at = 0
    for request in sorted((p for p in requests if p.departure), key=lambda packet: packet.departure):
        while at < len(replies) and replies[at].arrival < request.departure:
            at += 1
        if at == len(replies) or replies[at].arrival - request.departure > MAX_REPLY_DELAY_NS:
            continue
        reply = replies[at]
        at += 1
        if reply.departure:
            link_time = request.departure - request.arrival + reply.departure - reply.arrival
            round_trips[request.arrival] = link_time
    ordered = sorted((p for p in requests if p.path != 255), key=lambda packet: packet.arrival)
    return [Sample(p.arrival, p.path, round_trips.get(p.arrival)) for p in ordered]


def _queues(directions: list[dict[int, list[Passage]]]) -> list[tuple[int, int]]:
    """When packets were late, either way; what is less than a second apart is one."""
    late: set[int] = set()
    for direction_flows in directions:
        stays: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for packets in direction_flows.values():
            for packet in packets:
                if packet.departure:
                    stays[packet.path].append((packet.arrival, packet.departure - packet.arrival))
        bins: dict[int, list[float]] = defaultdict(list)
        for each in stays.values():
            median_stay = statistics.median(stay for _, stay in each)
            for arrival, stay in each:
                bins[arrival // BIN_NS].append(stay - median_stay)
        late |= {at for at, excess in bins.items() if statistics.median(excess) > QUEUE_NS}
    queues: list[tuple[int, int]] = []
    for at in sorted(late):
        begin, end = at * BIN_NS, (at + 1) * BIN_NS
        if queues and begin - queues[-1][1] < 1_000_000_000:
            queues[-1] = (queues[-1][0], end)
        else:
            queues.append((begin, end))
    return queues
