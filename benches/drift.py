"""Whether a sender falls behind its grid over a long run."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from figures import micros, quantile, slope
from namespaces import Pair
from sending import measure
from senders import Sender

# Messages a second of the long run.
RATE = 1_000


@dataclass(frozen=True)
class Drift:
    """neph's lateness over a long run: microseconds a minute, and how far its ends lie apart."""

    seconds: int
    captured_us_per_minute: float
    told_us_per_minute: float
    first_tenth_ns: float
    last_tenth_ns: float

    def sentence(self) -> str:
        """For people."""
        return (
            f"neph at 1,000/s over {self.seconds} s: lateness moves by "
            f"{self.captured_us_per_minute:+.2f} us a minute by the capture and "
            f"{self.told_us_per_minute:+.2f} by its own account; its median is "
            f"{micros(self.first_tenth_ns, 2)} us in the first tenth and "
            f"{micros(self.last_tenth_ns, 2)} us in the last."
        )


def drift(pair: Pair, sender: Sender, seconds: int) -> Drift:
    """A long run at 1,000/s: whether the sender falls behind its grid."""
    before = _wall_minus_raw()
    sent = measure(pair, sender, RATE, seconds)
    # Stamps are wall-clock time, the schedule is not: what the wall clock was slewed meanwhile
    # is no drift of the sender's.
    slewed = (_wall_minus_raw() - before) / sent.ran.seconds * 60 / 1e3
    # Against the nominal interval itself: a fitted grid would hide what is looked for.
    first = sent.stamps_ns[0]
    residuals = [stamp - first - at * 1e6 for at, stamp in enumerate(sent.stamps_ns)]
    tenth = len(sent.told) // 10
    return Drift(
        seconds,
        _per_minute(residuals) / 1e3 - slewed,
        _per_minute(sent.told) / 1e3,
        quantile(sent.told[:tenth], 0.5),
        quantile(sent.told[-tenth:], 0.5),
    )


def _per_minute(values: Sequence[float]) -> float:
    """The slope of the medians of each second: a late message here or there is no drift."""
    seconds = [values[at : at + RATE] for at in range(0, len(values) - RATE + 1, RATE)]
    medians = [quantile(second, 0.5) for second in seconds]
    return 60 * slope(range(len(medians)), medians)


def _wall_minus_raw() -> int:
    """The wall clock's lead over the raw one, ns; the narrowest of some readings."""
    readings = []
    for _ in range(20):
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings.append((ended - begun, wall - (begun + ended) // 2))
    return min(readings)[1]
