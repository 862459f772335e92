#!/usr/bin/env python3
"""What many flows cost: neph flows beside other tools, the same load, by turns.

    python3 benches/fleet.py --neph target/release/neph [--fortio PATH] [--cloudprober PATH]

Needs root and cc. See README.md for what is measured and how.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from capture import UDP, Capture, Packet
from environment import Environment, sentence
from exchanges import exchanges
from figures import micros, quantile, table
from fleets import Asker, Load, installed
from memory import watched
from namespaces import Pair, veth_pair
from processes import run, server

# Starting 512 processes, or 512 goroutines that first say hello, is not what is measured.
SETTLING_NS = 1_000_000_000


@dataclass(frozen=True)
class Result:
    """One run of one tool."""

    cpu_seconds: float
    memory: int
    sent: int
    answered: int
    flows: int
    round_trip_ns: float
    fullest_millisecond: int


def measure(pair: Pair, asker: Asker, load: Load, folder: Path) -> Result:
    """Runs a tool while its packets are captured."""
    with server(pair.server, asker.answerer(folder)), Capture(pair.client) as capture:
        with watched(pair.client) as memory:
            limit = load.seconds + (0 if asker.endless else 30)
            command = asker.command(load, folder)
            ran = run(pair.client, command, folder, limit, stop_at_limit=asker.endless)
        if ran.status != 0 and not asker.endless:
            raise RuntimeError(f"{asker.name} ended with {ran.status}: {ran.errors[-300:]}")
        packets = [p for p in capture.packets() if p.flow[0] == UDP and p.flow[2] == asker.port]
    return _result(packets, ran.cpu_seconds, memory.most)


def _result(packets: list[Packet], cpu_seconds: float, memory: int) -> Result:
    begin = packets[0].stamp_ns + SETTLING_NS
    sent = [packet for packet in packets if packet.outgoing]
    settled = [packet.stamp_ns // 1_000_000 for packet in sent if packet.stamp_ns >= begin]
    trips = [x.answered_ns - x.sent_ns for x in exchanges(packets) if x.sent_ns >= begin]
    return Result(
        cpu_seconds=cpu_seconds,
        memory=memory,
        sent=len(sent),
        answered=len(packets) - len(sent),
        flows=len({packet.flow for packet in sent}),
        round_trip_ns=quantile(trips, 0.5),
        fullest_millisecond=max(Counter(settled).values()),
    )


def compare(pair: Pair, askers: list[Asker], load: Load, rounds: int) -> dict[str, list[Result]]:
    """Every tool in every round, by turns."""
    results: dict[str, list[Result]] = {asker.name: [] for asker in askers}
    for number in range(rounds):
        for asker in askers[number % len(askers) :] + askers[: number % len(askers)]:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                build_loop(folder)
                results[asker.name].append(measure(pair, asker, load, folder))
            print(f"round {number + 1}: {asker.name}", file=sys.stderr)
    return results


def build_loop(folder: Path) -> None:
    """The C program, beside what is measured."""
    source = Path(__file__).with_name("fleet_loop.c")
    command = ["cc", "-O2", "-o", str(folder / "fleet_loop"), str(source)]
    subprocess.run(command, check=True)


def rows(results: dict[str, list[Result]]) -> list[list[str]]:
    """Medians over the rounds, each beside its ratio to neph's."""

    def median(name: str, field: str) -> float:
        return statistics.median(getattr(result, field) for result in results[name])

    first = next(iter(results))

    def ratio(name: str, field: str) -> str:
        return f"{median(name, field) / max(median(first, field), 1e-9):.2f}"

    return [
        [
            name,
            f"{median(name, 'flows'):.0f}",
            f"{median(name, 'sent'):.0f}",
            f"{median(name, 'cpu_seconds'):.2f}",
            ratio(name, "cpu_seconds"),
            f"{median(name, 'memory') / (1 << 20):.1f}",
            ratio(name, "memory"),
            micros(median(name, "round_trip_ns")),
            ratio(name, "round_trip_ns"),
            f"{median(name, 'fullest_millisecond'):.0f}",
        ]
        for name in results
    ]


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--fortio", default="fortio")
    parser.add_argument("--cloudprober", default="cloudprober")
    parser.add_argument("--flows", type=int, default=512)
    parser.add_argument("--interval-us", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    load = Load(asked.flows, asked.interval_us, asked.seconds)
    neph = str(Path(asked.neph).resolve())
    environment = Environment.begin()
    with veth_pair() as pair:
        askers = installed(neph, asked.fortio, asked.cloudprober)
        results = compare(pair, askers, load, asked.rounds)
    print(f"{load.flows} flows, {load.messages} messages in {load.seconds} s\n")
    heading = ["tool", "flows", "sent", "CPU s", "/neph", "MiB", "/neph"]
    print(table([*heading, "round trip us", "/neph", "most in 1 ms"], rows(results)))
    told = environment.tell()
    print(f"\n{sentence(told)}")
    if asked.json:
        kept = {name: [asdict(result) for result in each] for name, each in results.items()}
        asked.json.write_text(json.dumps({"environment": told, "results": kept}, indent=1))


if __name__ == "__main__":
    main()
