"""The round trips that a tool reports, and their match with captured exchanges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from exchanges import Exchange, first_after


class Matching(Enum):
    """How a tool's messages find their captured exchanges."""

    # The tool reports the wall-clock time at which each message starts.
    BY_WALL_CLOCK = "by wall clock"
    # The tool reports the time between its messages: take the shift at which the gaps agree best.
    BY_GAPS = "by order, gaps agreeing"
    # As many messages as exchanges, in order.
    BY_ORDER = "by order"
    # The tool reports quantiles only: no message is matched.
    QUANTILES = "quantiles only"


@dataclass(frozen=True, slots=True)
class ReportedMessage:
    """One message as the tool reports it; `start_ns` is 0 if the tool does not report it."""

    round_trip_ns: float
    start_ns: int = 0


@dataclass(frozen=True)
class Series:
    """One figure of one run of a tool."""

    figure: str
    matching: Matching
    messages: list[ReportedMessage] = field(default_factory=list)
    # p -> ns, for Matching.QUANTILES.
    quantiles: dict[float, float] = field(default_factory=dict)
    # Whether the round trip includes the connection's handshake: truth counts from the SYN.
    new_connection: bool = False

    def truth_ns(self, exchange: Exchange) -> int:
        """The true round trip of what the figure claims to measure."""
        return exchange.answered_ns - self.start_ns(exchange)

    def start_ns(self, exchange: Exchange) -> int:
        """When the exchange began, by the capture."""
        if self.new_connection and exchange.dialled_ns is not None:
            return exchange.dialled_ns
        return exchange.sent_ns


@dataclass(frozen=True, slots=True)
class Matched:
    """A message's reported and true round trip, ns."""

    reported: float
    truth: float


def match(series: Series, exchanges: list[Exchange]) -> list[Matched]:
    """Pairs each message with its exchange. Raises ValueError where that cannot be done safely."""
    methods: dict[Matching, Callable[[Series, list[Exchange]], list[Matched]]] = {
        Matching.BY_WALL_CLOCK: _by_wall_clock,
        Matching.BY_GAPS: _by_gaps,
        Matching.BY_ORDER: _by_order,
    }
    return methods[series.matching](series, exchanges)


def _pair(series: Series, message: ReportedMessage, exchange: Exchange) -> Matched:
    return Matched(message.round_trip_ns, series.truth_ns(exchange))


def _by_wall_clock(series: Series, exchanges: list[Exchange]) -> list[Matched]:
    if series.new_connection:
        exchanges = [exchange for exchange in exchanges if exchange.dialled_ns is not None]
        exchanges.sort(key=series.start_ns)
    moments = [series.start_ns(exchange) for exchange in exchanges]
    matched, missing = [], 0
    for message in series.messages:
        exchange = first_after(exchanges, moments, message.start_ns)
        if exchange is None:
            missing += 1
        else:
            matched.append(_pair(series, message, exchange))
    if missing > len(series.messages) // 10:
        raise ValueError(f"{missing} of {len(series.messages)} messages were not captured")
    return matched


def _by_order(series: Series, exchanges: list[Exchange]) -> list[Matched]:
    if len(exchanges) != len(series.messages):
        raise ValueError(f"{len(series.messages)} messages told, {len(exchanges)} captured")
    return [_pair(series, *pair) for pair in zip(series.messages, exchanges, strict=True)]


def _by_gaps(series: Series, exchanges: list[Exchange]) -> list[Matched]:
    extra_exchanges = len(exchanges) - len(series.messages)
    if extra_exchanges < 0:
        raise ValueError(f"{len(series.messages)} messages told, {len(exchanges)} captured")

    def disagreement(shift: int) -> float:
        offsets = [
            series.start_ns(exchange) - message.start_ns
            for message, exchange in zip(series.messages, exchanges[shift:], strict=False)
        ]
        return max(offsets) - min(offsets)

    best = min(range(extra_exchanges + 1), key=disagreement)
    chosen = exchanges[best : best + len(series.messages)]
    if disagreement(best) > 5_000_000:
        raise ValueError("the told gaps between messages agree with no part of the capture")
    return [_pair(series, *pair) for pair in zip(series.messages, chosen, strict=True)]
