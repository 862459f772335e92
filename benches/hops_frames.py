"""What two captures of one path say to somebody who knows nothing of neph's way to read them: which
packets are the same, when each passed either point, what was lost, and what came out of order.

Captures are pcap with nanoseconds of Ethernet frames with IPv4, as tcpdump writes them; both by one
clock. One point's stamps can be moved as if its clock was off.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

MAGIC = bytes.fromhex("4d3cb2a1")
FILE_HEADER, HEADER, ETHERNET = 24, 16, 14
SECOND = 1_000_000_000
ICMP, TCP, UDP = 1, 6, 17
# Datagrams to this port begin with the number of their first byte, in eight bytes.
NUMBERED = 7_700


@dataclass(frozen=True, slots=True)
class Frame:
    """A packet at one point. `bytes_` are the numbers of what it carries, where these have numbers."""

    stamp: int
    flow: tuple
    identity: tuple
    bytes_: tuple[int, int] | None


@dataclass
class Crossed:
    """What became of one way's packets."""

    # By its stamps at the sender's point and the other one; of what offload cut, those of its last byte.
    pairs: set[tuple[int, int]] = field(default_factory=set)
    joined: int = 0
    # By their stamps at the sender's point.
    lost: set[int] = field(default_factory=set)
    reordered: int = 0
    # Packets of which there are several alike.
    unclear: int = 0


def records(capture: bytes) -> Iterator[tuple[int, int]]:
    """Where each packet's header begins, and when it was stamped."""
    if capture[:4] != MAGIC:
        raise ValueError("no pcap of nanoseconds")
    at = FILE_HEADER
    while at + HEADER <= len(capture):
        seconds, nanos, kept = struct.unpack_from("<III", capture, at)
        yield at, seconds * SECOND + nanos
        at += HEADER + kept


def shifted(capture: bytes, offset: int, ppm: int) -> tuple[bytes, dict[int, int]]:
    """The same by a clock that is so many ns off at its first packet and runs so many ppm fast; and
    which stamp each of the new ones was."""
    moved, was = bytearray(capture), {}
    first = None
    for at, stamp in records(capture):
        first = stamp if first is None else first
        shown = stamp + offset + (stamp - first) * ppm // 1_000_000
        was[shown] = stamp
        struct.pack_into("<II", moved, at, *divmod(shown, SECOND))
    return bytes(moved), was


def frames(capture: bytes) -> Iterator[Frame]:
    """Its packets over IPv4, in the order of the file."""
    for at, stamp in records(capture):
        (kept,) = struct.unpack_from("<I", capture, at + 8)
        frame = capture[at + HEADER : at + HEADER + kept]
        if frame[12:14] != b"\x08\x00" or kept < ETHERNET + 28:
            continue
        ip = frame[ETHERNET:]
        head = (ip[0] & 15) * 4
        total, number = struct.unpack_from(">HH", ip, 2)
        protocol, body = ip[9], ip[head:]
        ports, length, counted = (0, 0), total - head, body[:24]
        numbers = None
        if protocol == TCP:
            ports = struct.unpack_from(">HH", body)
            (sequence,) = struct.unpack_from(">I", body, 4)
            options = (body[12] >> 4) * 4
            # All but the checksum, which offload leaves for later.
            counted = body[4:16] + body[20:options]
            length -= options
            numbers = (sequence, sequence + length) if length else None
        elif protocol == UDP:
            ports = struct.unpack_from(">HH", body)
            counted = body[8:24]
            if ports[1] == NUMBERED:
                (begin,) = struct.unpack_from(">Q", body, 8)
                numbers = (begin, begin + length - 8)
        elif protocol == ICMP:
            counted = body[:2] + body[4:24]
        else:
            continue
        flow = (protocol, ip[12:16], ip[16:20], *ports)
        yield Frame(stamp, flow, (flow, number, length, bytes(counted)), numbers)


def crossed(sender: list[Frame], receiver: list[Frame], end: int) -> Crossed:
    """Packets that go one way: first all of the point that they pass first. `end` is the latest stamp of
    the other point's capture. What did not come is lost, if what took longest would have come by then."""
    found = Crossed()
    here, there = (defaultdict(list) for _ in range(2))
    for frames_, by_identity in ((sender, here), (receiver, there)):
        for frame in frames_:
            by_identity[frame.identity].append(frame)
    order: dict[tuple, list[tuple[int, int]]] = defaultdict(list)
    pieces: dict[tuple, tuple[list[Frame], list[Frame]]] = defaultdict(lambda: ([], []))
    missing: list[int] = []
    for identity, sent in here.items():
        came = there.pop(identity, [])
        if len(sent) == len(came) == 1:
            frame, arrived = sent[0], came[0]
            found.pairs.add((frame.stamp, arrived.stamp))
            order[frame.flow].append((arrived.stamp, frame.stamp))
        elif sent[0].bytes_:
            pieces[sent[0].flow][0].extend(sent)
            pieces[sent[0].flow][1].extend(came)
        elif came:
            found.unclear += 1
        else:
            missing.extend(frame.stamp for frame in sent)
    for came in there.values():
        if came[0].bytes_:
            pieces[came[0].flow][1].extend(came)
    for sent, came in pieces.values():
        missing.extend(join(sent, came, found))
    longest = max((arrived - left for left, arrived in found.pairs), default=0)
    found.lost.update(left for left in missing if left + longest <= end)
    # By stamps: in a capture packets of several processors stand out of turn. Of those that arrive at
    # one moment none came before another.
    for each in order.values():
        latest = -1
        for _, left in sorted(each):
            found.reordered += left < latest
            latest = max(latest, left)
    return found


def join(sent: list[Frame], came: list[Frame], found: Crossed) -> list[int]:
    """Data of one flow that did not pass as it was: what has bytes in common belongs together. When
    what did not come was sent."""
    missing = []
    both = [(frame.bytes_, 0, frame) for frame in sent] + [(frame.bytes_, 1, frame) for frame in came]
    both.sort(key=lambda each: (each[0][0], -each[0][1]))
    groups: list[list] = []
    end = -1
    for each in both:
        if each[0][0] >= end:
            groups.append([])
        groups[-1].append(each)
        end = max(end, each[0][1])
    for group in groups:
        sides = [[each for each in group if each[1] == side] for side in (0, 1)]
        if not sides[0]:
            found.unclear += 1
            continue
        if not sides[1]:
            # Nothing was joined: each is a packet, those too that were sent again and lost again.
            missing.extend(frame.stamp for _, _, frame in sides[0])
            continue
        covered = [cover(side) for side in sides]
        last = [max((frame.stamp for _, _, frame in side), default=0) for side in sides]
        if None in covered:
            # A byte passed twice: it was sent again.
            found.unclear += 1
        elif covered[0] == covered[1]:
            found.pairs.add((last[0], last[1]))
            found.joined += 1
        elif covered[1] < covered[0]:
            missing.append(last[0])
    return missing


def cover(side: list) -> int | None:
    """How many bytes passed; None if one passed twice."""
    until, many = -1, 0
    for (begin, end), _, _ in side:
        if begin < until:
            return None
        until, many = end, many + end - begin
    return many
