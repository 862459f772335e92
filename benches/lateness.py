#!/usr/bin/env python3
"""How late each sender is: send times captured at its interface against the grid it meant.

    python3 benches/lateness.py --neph target/release/neph [--json FILE]

Needs root (namespaces, a packet socket). See README.md for what is measured and how.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from drift import Drift, drift
from environment import Environment, sentence
from figures import micros, quantile, table
from grid import lateness
from namespaces import veth_pair
from sending import SETTLING_NS, SenderRun, measure, servers
from senders import Neph, Sender, compile_spin_loop, senders

RATES = (100, 1_000, 10_000)


@dataclass
class Result:
    """One sender at one rate, over all rounds; ns."""

    sender: str
    rate: int
    achieved: list[float] = field(default_factory=list)
    skew_ppm: list[float] = field(default_factory=list)
    lateness_ns: list[float] = field(default_factory=list)
    # The lateness that neph reports.
    reported_lateness_ns: list[int] = field(default_factory=list)
    cpu_share: list[float] = field(default_factory=list)


def add_run(results: dict[tuple[str, int], Result], sender: Sender, rate: int, run: SenderRun) -> None:
    """Takes one run into the results."""
    result = results.setdefault((sender.name, rate), Result(sender.name, rate))
    grid_lateness = lateness(run.stamps_ns, 1e9 / rate)
    result.achieved.append(grid_lateness.rate)
    if grid_lateness.values:
        result.skew_ppm.append(grid_lateness.skew_ppm)
    result.lateness_ns += grid_lateness.values
    settling = rate * SETTLING_NS // 1_000_000_000
    result.reported_lateness_ns += run.reported_lateness_ns[settling:]
    result.cpu_share.append(run.process.cpu_seconds / run.process.seconds)


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
                *(f"{result.rate:,}", result.sender, str(len(result.lateness_ns))),
                f"{quantile(result.achieved, 0.5):,.0f}",
                *figures(result.lateness_ns),
                *figures(result.reported_lateness_ns),
                f"{100 * quantile(result.cpu_share, 0.5):.0f}",
                skew,
            ]
        )
    return table(heading, rows)


def as_json(
    results: dict[tuple[str, int], Result],
    drift_result: Drift | None,
    environment_facts: dict[str, str | int | float],
) -> str:
    """Everything a later comparison needs, nanoseconds."""

    def quantiles(values: list[float] | list[int]) -> dict[str, float]:
        return {str(p): quantile(values, p) for p in (0.5, 0.99)} if values else {}

    rows = [
        {
            **{"sender": result.sender, "rate": result.rate, "n": len(result.lateness_ns)},
            **{"achieved_per_second": result.achieved, "skew_ppm": result.skew_ppm},
            **{"late_ns": quantiles(result.lateness_ns), "told_ns": quantiles(result.reported_lateness_ns)},
            "cpu_share": result.cpu_share,
        }
        for result in results.values()
    ]
    document = {"environment": environment_facts, "results": rows, "drift": drift_result and drift_result.as_json()}
    return json.dumps(document, indent=2)


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
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
    args = parse_arguments()
    seed = random.randrange(1 << 32) if args.seed is None else args.seed
    results: dict[tuple[str, int], Result] = {}
    failures: list[str] = []
    drift_result = None
    environment = Environment.begin()
    with (
        tempfile.TemporaryDirectory() as folder,
        veth_pair() as pair,
        servers(pair, args.neph),
    ):
        all_senders = senders(args.neph, compile_spin_loop(Path(folder)))
        selected = [sender for sender in all_senders if not args.only or args.only in sender.name]
        runs = [(sender, rate) for sender in selected for rate in RATES]
        order = random.Random(seed)
        for _ in range(args.rounds):
            order.shuffle(runs)
            for sender, rate in runs:
                try:
                    add_run(results, sender, rate, measure(pair, sender, rate, args.seconds))
                except (RuntimeError, ValueError) as error:
                    failures.append(f"{sender.name} at {rate}/s: {error}")
                time.sleep(0.1)
        if args.drift_seconds:
            drift_result = drift(pair, Neph(args.neph, "60us"), args.drift_seconds)
    environment_facts = {**environment.facts(), "rounds": args.rounds, "seed": seed}
    print(markdown(results))
    if drift_result:
        print(f"\n{drift_result.sentence()}")
    print(f"\nMicroseconds. {sentence(environment_facts)}")
    for failure in failures:
        print(f"left out: {failure}", file=sys.stderr)
    if args.json:
        args.json.write_text(as_json(results, drift_result, environment_facts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
