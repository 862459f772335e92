"""Reads two captures of one path without any code of neph: which packets are the same, when each packet
passed either point, which packets were lost, and which were reordered.

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
NUMBERED_PORT = 7_700


@dataclass(frozen=True, slots=True)
class Frame:
    """A packet at one point. `byte_range`: sequence numbers of its payload, if the payload has such."""

    stamp: int
    flow: tuple
    identity: tuple
    byte_range: tuple[int, int] | None


@dataclass
class DirectionResult:
    """The packets of one direction: matched, lost and reordered."""

    # By its stamps at the sender's point and the other one; of what offload cut, those of its last byte.
    pairs: set[tuple[int, int]] = field(default_factory=set)
    joined: int = 0
    # By their stamps at the sender's point.
    lost: set[int] = field(default_factory=set)
    reordered: int = 0
    # Packets with the same identity as others.
    ambiguous: int = 0


def records(capture: bytes) -> Iterator[tuple[int, int]]:
    """The offset of each packet's header, and its timestamp."""
    if capture[:4] != MAGIC:
        raise ValueError("no pcap of nanoseconds")
    at = FILE_HEADER
    while at + HEADER <= len(capture):
        seconds, nanos, captured_length = struct.unpack_from("<III", capture, at)
        yield at, seconds * SECOND + nanos
        at += HEADER + captured_length


def shift_clock(capture: bytes, offset: int, ppm: int) -> tuple[bytes, dict[int, int]]:
    """The capture by a clock that is `offset` ns off at the first packet and runs `ppm` fast; and the
    original timestamp of each shifted one."""
    shifted, true_stamps = bytearray(capture), {}
    first = None
    for at, stamp in records(capture):
        first = stamp if first is None else first
        shifted_stamp = stamp + offset + (stamp - first) * ppm // 1_000_000
        true_stamps[shifted_stamp] = stamp
        struct.pack_into("<II", shifted, at, *divmod(shifted_stamp, SECOND))
    return bytes(shifted), true_stamps


def frames(capture: bytes) -> Iterator[Frame]:
    """The IPv4 packets of a capture, in the order of the file."""
    for at, stamp in records(capture):
        (captured_length,) = struct.unpack_from("<I", capture, at + 8)
        frame = capture[at + HEADER : at + HEADER + captured_length]
        if frame[12:14] != b"\x08\x00" or captured_length < ETHERNET + 28:
            continue
        ip = frame[ETHERNET:]
        header_length = (ip[0] & 15) * 4
        total_length, ip_id = struct.unpack_from(">HH", ip, 2)
        protocol, body = ip[9], ip[header_length:]
        ports, length, identity_bytes = (0, 0), total_length - header_length, body[:24]
        byte_range = None
        if protocol == TCP:
            ports = struct.unpack_from(">HH", body)
            (sequence,) = struct.unpack_from(">I", body, 4)
            tcp_header_length = (body[12] >> 4) * 4
            # All but the checksum, which offload leaves for later.
            identity_bytes = body[4:16] + body[20:tcp_header_length]
            length -= tcp_header_length
            byte_range = (sequence, sequence + length) if length else None
        elif protocol == UDP:
            ports = struct.unpack_from(">HH", body)
            identity_bytes = body[8:24]
            if ports[1] == NUMBERED_PORT:
                (begin,) = struct.unpack_from(">Q", body, 8)
                byte_range = (begin, begin + length - 8)
        elif protocol == ICMP:
            identity_bytes = body[:2] + body[4:24]
        else:
            continue
        flow = (protocol, ip[12:16], ip[16:20], *ports)
        yield Frame(stamp, flow, (flow, ip_id, length, bytes(identity_bytes)), byte_range)


def compare_points(sender: list[Frame], receiver: list[Frame], end: int) -> DirectionResult:
    """Compares the packets of one direction at the sender's and the receiver's point. `end`: latest timestamp
    at the receiver. A missing packet is lost if even the slowest packet would have arrived by then."""
    result = DirectionResult()
    sent_by_identity, received_by_identity = (defaultdict(list) for _ in range(2))
    for point_frames, by_identity in ((sender, sent_by_identity), (receiver, received_by_identity)):
        for frame in point_frames:
            by_identity[frame.identity].append(frame)
    arrivals: dict[tuple, list[tuple[int, int]]] = defaultdict(list)
    segments: dict[tuple, tuple[list[Frame], list[Frame]]] = defaultdict(lambda: ([], []))
    lost_stamps: list[int] = []
    for identity, sent in sent_by_identity.items():
        received = received_by_identity.pop(identity, [])
        if len(sent) == len(received) == 1:
            frame, arrival = sent[0], received[0]
            result.pairs.add((frame.stamp, arrival.stamp))
            arrivals[frame.flow].append((arrival.stamp, frame.stamp))
        elif sent[0].byte_range:
            segments[sent[0].flow][0].extend(sent)
            segments[sent[0].flow][1].extend(received)
        elif received:
            result.ambiguous += 1
        else:
            lost_stamps.extend(frame.stamp for frame in sent)
    for received in received_by_identity.values():
        if received[0].byte_range:
            segments[received[0].flow][1].extend(received)
    for sent, received in segments.values():
        lost_stamps.extend(match_segments(sent, received, result))
    max_delay = max((received_at - sent_at for sent_at, received_at in result.pairs), default=0)
    result.lost.update(sent_at for sent_at in lost_stamps if sent_at + max_delay <= end)
    # By stamps: in a capture packets of several processors stand out of turn. Of those that arrive at
    # one moment none came before another.
    for frame_times in arrivals.values():
        latest = -1
        for _, sent_at in sorted(frame_times):
            result.reordered += sent_at < latest
            latest = max(latest, sent_at)
    return result


def match_segments(sent: list[Frame], received: list[Frame], result: DirectionResult) -> list[int]:
    """Matches packets of one flow that offload cut or joined: those with common bytes belong together.
    Returns the send times of the lost ones."""
    lost_stamps = []
    ranges = [(frame.byte_range, 0, frame) for frame in sent] + [(frame.byte_range, 1, frame) for frame in received]
    ranges.sort(key=lambda item: (item[0][0], -item[0][1]))
    groups: list[list] = []
    end = -1
    for item in ranges:
        if item[0][0] >= end:
            groups.append([])
        groups[-1].append(item)
        end = max(end, item[0][1])
    for group in groups:
        sides = [[item for item in group if item[1] == side] for side in (0, 1)]
        if not sides[0]:
            result.ambiguous += 1
            continue
        if not sides[1]:
            # Each is a lost packet, also a retransmission that was lost.
            lost_stamps.extend(frame.stamp for _, _, frame in sides[0])
            continue
        side_bytes = [covered_bytes(side) for side in sides]
        last_stamps = [max((frame.stamp for _, _, frame in side), default=0) for side in sides]
        if None in side_bytes:
            # A byte passed twice: a retransmission.
            result.ambiguous += 1
        elif side_bytes[0] == side_bytes[1]:
            result.pairs.add((last_stamps[0], last_stamps[1]))
            result.joined += 1
        elif side_bytes[1] < side_bytes[0]:
            lost_stamps.append(last_stamps[0])
    return lost_stamps


def covered_bytes(side: list) -> int | None:
    """The number of bytes that passed; None if a byte passed twice."""
    range_end, count = -1, 0
    for (begin, end), _, _ in side:
        if begin < range_end:
            return None
        range_end, count = end, count + end - begin
    return count
