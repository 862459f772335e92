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
    found = [exchange for flow in by_flow.values() for exchange in _of_one_flow(flow)]
    return sorted(found, key=lambda exchange: exchange.sent_ns)


def _of_one_flow(packets: list[Packet]) -> Iterable[Exchange]:
    """A request that left before the last one was answered spoils both: neither is told."""
    dialled: int | None = None
    sent: int | None = None
    answered: int | None = None
    spoilt = False
    for packet in packets:
        if packet.outgoing and packet.flags & SYN:
            dialled = packet.stamp_ns
        if packet.payload <= 0:
            continue
        if not packet.outgoing:
            answered = packet.stamp_ns if sent is not None else None
            continue
        if sent is not None and answered is not None:
            if not spoilt:
                yield Exchange(packet.flow, dialled, sent, answered)
            dialled, spoilt = None, False
        elif sent is not None and packet.stamp_ns - sent > ONE_REQUEST_NS:
            spoilt = True
        sent, answered = packet.stamp_ns, None
    if sent is not None and answered is not None and not spoilt:
        yield Exchange(packets[0].flow, dialled, sent, answered)


def busiest_flow(found: list[Exchange]) -> list[Exchange]:
    """The exchanges of the flow that has most of them: the measurement, not its negotiation."""
    counts: dict[tuple[int, int, int], int] = {}
    for exchange in found:
        counts[exchange.flow] = counts.get(exchange.flow, 0) + 1
    if not counts:
        return []
    most = max(counts, key=lambda flow: counts[flow])
    return [exchange for exchange in found if exchange.flow == most]


def first_after(found: list[Exchange], moments: list[int], wall_ns: int) -> Exchange | None:
    """The exchange whose moment (in the sorted `moments`) is the first at or after `wall_ns`.

    2 us before it count as at it, because a tool's wall clock and the kernel's differ by as much
    as reading them takes. None if there is none within 2 ms.
    """
    at = bisect_left(moments, wall_ns - 2_000)
    if at == len(found) or moments[at] - wall_ns > 2_000_000:
        return None
    return found[at]
