"""From captured packets to the true round trips, one request at a time."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

from capture import SYN, Packet

# Packets of one request leave closer together than this.
ONE_REQUEST_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its reply, by the stamps of the client's interface (wall clock, ns)."""

    flow: tuple[int, int, int]
    # The SYN of the connection, on the connection's first exchange.
    dialled_ns: int | None
    # The request's last packet leaving.
    sent_ns: int
    # The reply's last packet (with payload) arriving.
    answered_ns: int


def exchanges(packets: Iterable[Packet]) -> list[Exchange]:
    """All exchanges of all flows, in order of sending. Packets without payload do not count."""
    by_flow: dict[tuple[int, int, int], list[Packet]] = {}
    for packet in packets:
        by_flow.setdefault(packet.flow, []).append(packet)
    exchanges = [exchange for flow in by_flow.values() for exchange in _exchanges_of_flow(flow)]
    return sorted(exchanges, key=lambda exchange: exchange.sent_ns)


def _exchanges_of_flow(packets: list[Packet]) -> Iterable[Exchange]:
    """A request that left before the previous one was answered makes both ambiguous: neither is returned."""
    dialled_ns: int | None = None
    sent_ns: int | None = None
    answered_ns: int | None = None
    overlaps = False
    for packet in packets:
        if packet.is_outgoing and packet.flags & SYN:
            dialled_ns = packet.stamp_ns
        if packet.payload_bytes <= 0:
            continue
        if not packet.is_outgoing:
            answered_ns = packet.stamp_ns if sent_ns is not None else None
            continue
        if sent_ns is not None and answered_ns is not None:
            if not overlaps:
                yield Exchange(packet.flow, dialled_ns, sent_ns, answered_ns)
            dialled_ns, overlaps = None, False
        elif sent_ns is not None and packet.stamp_ns - sent_ns > ONE_REQUEST_NS:
            overlaps = True
        sent_ns, answered_ns = packet.stamp_ns, None
    if sent_ns is not None and answered_ns is not None and not overlaps:
        yield Exchange(packets[0].flow, dialled_ns, sent_ns, answered_ns)


def busiest_flow(exchanges: list[Exchange]) -> list[Exchange]:
    """The exchanges of the flow that has most of them: the measurement, not its negotiation."""
    counts: dict[tuple[int, int, int], int] = {}
    for exchange in exchanges:
        counts[exchange.flow] = counts.get(exchange.flow, 0) + 1
    if not counts:
        return []
    busiest = max(counts, key=lambda flow: counts[flow])
    return [exchange for exchange in exchanges if exchange.flow == busiest]


def first_after(exchanges: list[Exchange], moments: list[int], wall_ns: int) -> Exchange | None:
    """The exchange whose moment (in the sorted `moments`) is the first at or after `wall_ns`.

    2 us before it count as at it, because a tool's wall clock and the kernel's differ by as much
    as reading them takes. None if there is none within 2 ms.
    """
    index = bisect_left(moments, wall_ns - 2_000)
    if index == len(exchanges) or moments[index] - wall_ns > 2_000_000:
        return None
    return exchanges[index]
