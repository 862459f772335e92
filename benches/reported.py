"""What a tool says of its round trips, and how it is held against the truth."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from exchanges import Exchange, first_after


class Matching(Enum):
    """How a tool's messages find their captured exchanges."""

    # The tool tells when, by the wall clock, it began each message.
    BY_WALL_CLOCK = "by wall clock"
    # The tool tells the time between its messages: the shift at which the gaps agree best.
    BY_GAPS = "by order, gaps agreeing"
    # As many messages as exchanges, in order.
    BY_ORDER = "by order"
    # The tool tells quantiles only: nothing is matched.
    QUANTILES = "quantiles only"


@dataclass(frozen=True, slots=True)
class Told:
    """One message as the tool tells it; `begun_ns` is 0 where it does not say."""

    round_trip_ns: float
    begun_ns: int = 0


@dataclass(frozen=True)
class Series:
    """One figure of one run of a tool."""

    figure: str
    matching: Matching
    messages: list[Told] = field(default_factory=list)
    # p -> ns, for Matching.QUANTILES.
    quantiles: dict[float, float] = field(default_factory=dict)
    # Whether the round trip includes the connection's handshake: truth counts from the SYN.
    new_connection: bool = False

    def truth_ns(self, exchange: Exchange) -> int:
        """The true round trip of what the figure claims to measure."""
        return exchange.answered_ns - self.begun_ns(exchange)

    def begun_ns(self, exchange: Exchange) -> int:
        """When the exchange began, by the capture."""
        if self.new_connection and exchange.dialled_ns is not None:
            return exchange.dialled_ns
        return exchange.sent_ns


@dataclass(frozen=True, slots=True)
class Matched:
    """A message's reported and true round trip, ns."""

    reported: float
    truth: float


def match(series: Series, found: list[Exchange]) -> list[Matched]:
    """Pairs each message with its exchange. Raises ValueError where that cannot be done safely."""
    ways: dict[Matching, Callable[[Series, list[Exchange]], list[Matched]]] = {
        Matching.BY_WALL_CLOCK: _by_wall_clock,
        Matching.BY_GAPS: _by_gaps,
        Matching.BY_ORDER: _by_order,
    }
    return ways[series.matching](series, found)


def _pair(series: Series, told: Told, exchange: Exchange) -> Matched:
    return Matched(told.round_trip_ns, series.truth_ns(exchange))


def _by_wall_clock(series: Series, found: list[Exchange]) -> list[Matched]:
    if series.new_connection:
        found = [exchange for exchange in found if exchange.dialled_ns is not None]
        found.sort(key=series.begun_ns)
    moments = [series.begun_ns(exchange) for exchange in found]
    matched, missing = [], 0
    for told in series.messages:
        exchange = first_after(found, moments, told.begun_ns)
        if exchange is None:
            missing += 1
        else:
            matched.append(_pair(series, told, exchange))
    if missing > len(series.messages) // 10:
        raise ValueError(f"{missing} of {len(series.messages)} messages were not captured")
    return matched


def _by_order(series: Series, found: list[Exchange]) -> list[Matched]:
    if len(found) != len(series.messages):
        raise ValueError(f"{len(series.messages)} messages told, {len(found)} captured")
    return [_pair(series, *both) for both in zip(series.messages, found, strict=True)]


def _by_gaps(series: Series, found: list[Exchange]) -> list[Matched]:
    spare = len(found) - len(series.messages)
    if spare < 0:
        raise ValueError(f"{len(series.messages)} messages told, {len(found)} captured")

    def disagreement(shift: int) -> float:
        offsets = [
            series.begun_ns(exchange) - told.begun_ns
            for told, exchange in zip(series.messages, found[shift:], strict=False)
        ]
        return max(offsets) - min(offsets)

    best = min(range(spare + 1), key=disagreement)
    chosen = found[best : best + len(series.messages)]
    if disagreement(best) > 5_000_000:
        raise ValueError("the told gaps between messages agree with no part of the capture")
    return [_pair(series, *both) for both in zip(series.messages, chosen, strict=True)]
