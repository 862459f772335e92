#!/usr/bin/env python3
"""How late each sender is: send times captured at its interface against the grid it meant.

    python3 benches/lateness.py --neph target/release/neph [--json FILE]

Needs root (namespaces, a packet socket). See README.md for what is measured and how.
"""

import argparse
import json
import random
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from capture import UDP, Capture, Packet
from environment import Environment, sentence
from figures import micros, quantile, slope, table
from grid import lateness
from namespaces import SERVER_ADDRESS, Pair, entered, veth_pair
from processes import Ran, run, server
from senders import (
    NEPH_PORT,
    SINK_PORT,
    SOCKPERF_PORT,
    Neph,
    Sender,
    compile_spin_loop,
    senders,
    told_lateness,
)

RATES = (100, 1_000, 10_000)
# Warming up and negotiating is not what is measured; neph sends one packet after its schedule.
SETTLING_NS = 700_000_000
LAST = 3


@dataclass
class Result:
    """One sender at one rate, over all rounds; ns."""

    sender: str
    rate: int
    achieved: list[float] = field(default_factory=list)
    skew_ppm: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    # What neph says of itself.
    told: list[int] = field(default_factory=list)
    cpu_share: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Drift:
    """neph's lateness over a long run: microseconds a minute, and how far its ends lie apart."""

    seconds: int
    captured_us_per_minute: float
    told_us_per_minute: float
    first_tenth_ns: float
    last_tenth_ns: float


@dataclass(frozen=True)
class Sent:
    """One run of one sender."""

    stamps_ns: list[int]
    told: list[int]
    ran: Ran


def measure(pair: Pair, sender: Sender, rate: int, seconds: int) -> Sent:
    """One run: the send times at the interface, and what the sender says of itself."""
    with (
        tempfile.TemporaryDirectory() as name,
        Capture(pair.client, only_outgoing=True) as capture,
    ):
        folder = Path(name)
        command = sender.command(rate, seconds, folder)
        limit = seconds if sender.endless else seconds + 20
        ran = run(pair.client, command, folder, limit, stop_at_limit=sender.endless)
        if ran.status != 0 and not sender.endless:
            raise RuntimeError(f"{sender.name} ended with {ran.status}: {ran.errors[-300:]}")
        stamps = _settled(capture.packets(), sender.port)
        told = told_lateness(folder) if isinstance(sender, Neph) else []
    return Sent(stamps, told, ran)


def _settled(packets: list[Packet], port: int) -> list[int]:
    flows: dict[tuple[int, int, int], list[int]] = {}
    for packet in packets:
        if packet.flow[0] == UDP and packet.flow[2] == port:
            flows.setdefault(packet.flow, []).append(packet.stamp_ns)
    stamps = max(flows.values(), key=len, default=[])
    if len(stamps) < 50:
        raise RuntimeError(f"only {len(stamps)} packets to port {port} were captured")
    begin = stamps[0] + SETTLING_NS
    return [stamp for stamp in stamps[:-LAST] if stamp >= begin]


def add(results: dict[tuple[str, int], Result], sender: Sender, rate: int, sent: Sent) -> None:
    """Takes one run into the results."""
    result = results.setdefault((sender.name, rate), Result(sender.name, rate))
    found = lateness(sent.stamps_ns, 1e9 / rate)
    result.achieved.append(found.rate)
    if found.values:
        result.skew_ppm.append(found.skew_ppm)
    result.late += found.values
    settling = rate * SETTLING_NS // 1_000_000_000
    result.told += sent.told[settling:]
    result.cpu_share.append(sent.ran.cpu_seconds / sent.ran.seconds)


def drift(pair: Pair, sender: Sender, seconds: int) -> Drift:
    """A long run at 1,000/s: whether the sender falls behind its grid."""
    before = _wall_minus_raw()
    sent = measure(pair, sender, 1_000, seconds)
    # Stamps are wall-clock time, the schedule is not: what the wall clock was slewed meanwhile
    # is no drift of the sender's.
    slewed = (_wall_minus_raw() - before) / sent.ran.seconds * 60 / 1e3
    # Against the nominal interval itself: a fitted grid would hide what is looked for.
    minutes = [stamp / 60e9 for stamp in sent.stamps_ns]
    residuals = [stamp - at * 1e6 for at, stamp in enumerate(sent.stamps_ns)]
    told_minutes = [at / 60_000 for at in range(len(sent.told))]
    tenth = len(sent.told) // 10
    from_first = [minute - minutes[0] for minute in minutes]
    captured = slope(from_first, [residual - residuals[0] for residual in residuals]) / 1e3
    return Drift(
        seconds,
        captured - slewed,
        slope(told_minutes, sent.told) / 1e3,
        quantile(sent.told[:tenth], 0.5),
        quantile(sent.told[-tenth:], 0.5),
    )


def _wall_minus_raw() -> int:
    """The wall clock's lead over the raw one, ns; the narrowest of some readings."""
    readings = []
    for _ in range(20):
        begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
        readings.append((ended - begun, wall - (begun + ended) // 2))
    return min(readings)[1]


@contextmanager
def sink(namespace: str) -> Iterator[None]:
    """A socket that swallows datagrams, so that nobody answers that the port is closed."""
    with entered(namespace):
        swallowing = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with swallowing:
        swallowing.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        swallowing.bind((SERVER_ADDRESS, SINK_PORT))
        yield


def servers(pair: Pair, neph: str) -> ExitStack:
    """Whoever answers the senders that want an answer."""
    stack = ExitStack()
    stack.enter_context(sink(pair.server))
    commands = [(neph, "reflect", "--listen", f"{SERVER_ADDRESS}:{NEPH_PORT}", "--quiet")]
    if shutil.which("sockperf"):
        commands += [("sockperf", "server", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT))]
    if shutil.which("irtt"):
        commands += [("irtt", "server", "-i", "0", "-b", SERVER_ADDRESS)]
    for command in commands:
        stack.enter_context(server(pair.server, command))
    return stack


def markdown(results: dict[tuple[str, int], Result]) -> str:
    """The table: microseconds."""
    heading = ["rate", "sender", "n", "achieved/s", "late p50", "late p99", "says p50", "says p99"]
    heading += ["CPU %", "skew ppm"]
    rows = []
    for result in sorted(results.values(), key=lambda each: each.rate):

        def figures(values: list[float] | list[int]) -> list[str]:
            return [micros(quantile(values, p) if values else None) for p in (0.5, 0.99)]

        skew = f"{quantile(result.skew_ppm, 0.5):+.1f}" if result.skew_ppm else "-"
        rows.append(
            [
                *(f"{result.rate:,}", result.sender, str(len(result.late))),
                f"{quantile(result.achieved, 0.5):,.0f}",
                *figures(result.late),
                *figures(result.told),
                f"{100 * quantile(result.cpu_share, 0.5):.0f}",
                skew,
            ]
        )
    return table(heading, rows)


def as_json(
    results: dict[tuple[str, int], Result],
    drifted: Drift | None,
    told: dict[str, str | int | float],
) -> str:
    """Everything a later comparison needs, nanoseconds."""

    def both(values: list[float] | list[int]) -> dict[str, float]:
        return {str(p): quantile(values, p) for p in (0.5, 0.99)} if values else {}

    rows = [
        {
            **{"sender": result.sender, "rate": result.rate, "n": len(result.late)},
            **{"achieved_per_second": result.achieved, "skew_ppm": result.skew_ppm},
            **{"late_ns": both(result.late), "told_ns": both(result.told)},
            "cpu_share": result.cpu_share,
        }
        for result in results.values()
    ]
    document = {"environment": told, "results": rows, "drift": drifted and vars(drifted)}
    return json.dumps(document, indent=2)


def options() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", default="target/release/neph", help="the program to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="length of each run")
    parser.add_argument("--drift-seconds", type=int, default=60, help="0: no drift run")
    parser.add_argument("--only", help="senders whose name contains this")
    parser.add_argument("--seed", type=int, default=None, help="order of the rounds")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


def main() -> int:
    """Rounds over all senders and rates, each in a new random order; then the long run."""
    typed = options()
    seed = random.randrange(1 << 32) if typed.seed is None else typed.seed
    results: dict[tuple[str, int], Result] = {}
    failures: list[str] = []
    drifted = None
    environment = Environment.begin()
    with (
        tempfile.TemporaryDirectory() as folder,
        veth_pair() as pair,
        servers(pair, typed.neph),
    ):
        known = senders(typed.neph, compile_spin_loop(Path(folder)))
        chosen = [sender for sender in known if not typed.only or typed.only in sender.name]
        runs = [(sender, rate) for sender in chosen for rate in RATES]
        order = random.Random(seed)
        for _ in range(typed.rounds):
            order.shuffle(runs)
            for sender, rate in runs:
                try:
                    add(results, sender, rate, measure(pair, sender, rate, typed.seconds))
                except (RuntimeError, ValueError) as error:
                    failures.append(f"{sender.name} at {rate}/s: {error}")
                time.sleep(0.1)
        if typed.drift_seconds:
            drifted = drift(pair, Neph(typed.neph, "60us"), typed.drift_seconds)
    told = {**environment.tell(), "rounds": typed.rounds, "seed": seed}
    print(markdown(results))
    if drifted:
        print(
            f"\nneph at 1,000/s over {drifted.seconds} s: lateness moves by "
            f"{drifted.captured_us_per_minute:+.2f} us a minute by the capture and "
            f"{drifted.told_us_per_minute:+.2f} by its own account; its median is "
            f"{micros(drifted.first_tenth_ns, 2)} us in the first tenth and "
            f"{micros(drifted.last_tenth_ns, 2)} us in the last."
        )
    print(f"\nMicroseconds. {sentence(told)}")
    for failure in failures:
        print(f"left out: {failure}", file=sys.stderr)
    if typed.json:
        typed.json.write_text(as_json(results, drifted, told))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
