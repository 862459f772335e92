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
    reported_us_per_minute: float
    first_tenth_ns: float
    last_tenth_ns: float

    def sentence(self) -> str:
        """For people."""
        return (
            f"neph at 1,000/s over {self.seconds} s: lateness moves by "
            f"{self.captured_us_per_minute:+.2f} us a minute by the capture and "
            f"{self.reported_us_per_minute:+.2f} by its own account; its median is "
            f"{micros(self.first_tenth_ns, 2)} us in the first tenth and "
            f"{micros(self.last_tenth_ns, 2)} us in the last."
        )

    def as_json(self) -> dict[str, float]:
        """The figures by the keys of the JSON file."""
        figures = dict(vars(self))
        figures["told_us_per_minute"] = figures.pop("reported_us_per_minute")
        return figures


def drift(pair: Pair, sender: Sender, seconds: int) -> Drift:
    """A long run at 1,000/s: whether the sender falls behind its grid."""
    offset_before = _wall_minus_raw()
    run = measure(pair, sender, RATE, seconds)
    # Stamps are wall-clock time, the schedule is not: what the wall clock was slewed meanwhile
    # is no drift of the sender's.
    slewed_us_per_minute = (_wall_minus_raw() - offset_before) / run.process.seconds * 60 / 1e3
    # Against the nominal interval itself: a fitted grid would hide what is looked for.
    first_stamp = run.stamps_ns[0]
    residuals = [stamp - first_stamp - index * 1e6 for index, stamp in enumerate(run.stamps_ns)]
    tenth = len(run.reported_lateness_ns) // 10
    return Drift(
        seconds,
        _per_minute(residuals) / 1e3 - slewed_us_per_minute,
        _per_minute(run.reported_lateness_ns) / 1e3,
        quantile(run.reported_lateness_ns[:tenth], 0.5),
        quantile(run.reported_lateness_ns[-tenth:], 0.5),
    )


def _per_minute(values: Sequence[float]) -> float:
    """The slope of the medians of each second: a late message here or there is no drift."""
    seconds = [values[index : index + RATE] for index in range(0, len(values) - RATE + 1, RATE)]
    medians = [quantile(second, 0.5) for second in seconds]
    return 60 * slope(range(len(medians)), medians)


def _wall_minus_raw() -> int:
    """The wall clock's lead over the raw one, ns; the narrowest of some readings."""
    readings = []
    for _ in range(20):
        raw_before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        raw_after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings.append((raw_after - raw_before, wall - (raw_before + raw_after) // 2))
    return min(readings)[1]
