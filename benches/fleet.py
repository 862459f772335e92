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
from fleet_tools import FleetTool, Load, installed_tools
from memory import watch_memory
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


def measure(pair: Pair, tool: FleetTool, load: Load, folder: Path) -> Result:
    """Runs a tool while its packets are captured."""
    with server(pair.server, tool.server_command(folder)), Capture(pair.client) as capture:
        with watch_memory(pair.client) as memory:
            limit = load.seconds + (0 if tool.runs_until_stopped else 30)
            command = tool.command(load, folder)
            finished = run(pair.client, command, folder, limit, stop_at_limit=tool.runs_until_stopped)
        if finished.status != 0 and not tool.runs_until_stopped:
            raise RuntimeError(f"{tool.name} ended with {finished.status}: {finished.errors[-300:]}")
        packets = [packet for packet in capture.packets() if packet.flow[0] == UDP and packet.flow[2] == tool.port]
    return _result(packets, finished.cpu_seconds, memory.max_bytes)


def _result(packets: list[Packet], cpu_seconds: float, memory: int) -> Result:
    settled_at = packets[0].stamp_ns + SETTLING_NS
    sent = [packet for packet in packets if packet.is_outgoing]
    send_milliseconds = [packet.stamp_ns // 1_000_000 for packet in sent if packet.stamp_ns >= settled_at]
    round_trips = [exchange.answered_ns - exchange.sent_ns for exchange in exchanges(packets) if exchange.sent_ns >= settled_at]
    return Result(
        cpu_seconds=cpu_seconds,
        memory=memory,
        sent=len(sent),
        answered=len(packets) - len(sent),
        flows=len({packet.flow for packet in sent}),
        round_trip_ns=quantile(round_trips, 0.5),
        fullest_millisecond=max(Counter(send_milliseconds).values()),
    )


def compare(pair: Pair, tools: list[FleetTool], load: Load, rounds: int) -> dict[str, list[Result]]:
    """Every tool in every round, by turns."""
    results: dict[str, list[Result]] = {tool.name: [] for tool in tools}
    for number in range(rounds):
        for tool in tools[number % len(tools) :] + tools[: number % len(tools)]:
            with tempfile.TemporaryDirectory() as folder_name:
                folder = Path(folder_name)
                build_loop(folder)
                results[tool.name].append(measure(pair, tool, load, folder))
            print(f"round {number + 1}: {tool.name}", file=sys.stderr)
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

    neph_name = next(iter(results))

    def ratio(name: str, field: str) -> str:
        return f"{median(name, field) / max(median(neph_name, field), 1e-9):.2f}"

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
    args = parser.parse_args()
    load = Load(args.flows, args.interval_us, args.seconds)
    neph = str(Path(args.neph).resolve())
    environment = Environment.begin()
    with veth_pair() as pair:
        tools = installed_tools(neph, args.fortio, args.cloudprober)
        results = compare(pair, tools, load, args.rounds)
    print(f"{load.flows} flows, {load.messages} messages in {load.seconds} s\n")
    heading = ["tool", "flows", "sent", "CPU s", "/neph", "MiB", "/neph"]
    print(table([*heading, "round trip us", "/neph", "most in 1 ms"], rows(results)))
    environment_facts = environment.facts()
    print(f"\n{sentence(environment_facts)}")
    if args.json:
        tool_results = {name: [asdict(result) for result in runs] for name, runs in results.items()}
        args.json.write_text(json.dumps({"environment": environment_facts, "results": tool_results}, indent=1))


if __name__ == "__main__":
    main()
