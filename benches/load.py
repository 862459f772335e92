#!/usr/bin/env python3
"""HTTP responses per second: neph load, wrk, and a C loop with nothing but the calls.

    cargo build --release -p neph
    python3 benches/load.py --neph target/release/neph [--json load.json]

Two network namespaces joined by a veth pair. The service is `neph reflect --serve` without service time. All
tools run in each round, in a new random order; ratios are of the same round, and their median counts. wrk is
left out where it is not installed. At the end, the lateness of arrivals at 10,000/s with --spin. Needs root.
"""

import argparse
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from environment import Environment, sentence
from figures import table
from namespaces import SERVER_ADDRESS, Pair, veth_pair
from processes import FinishedProcess, run, server

PORT = "8090"
URL = f"http://{SERVER_ADDRESS}:{PORT}/"
CONNECTIONS = (1, 64)


@dataclass(frozen=True)
class Figure:
    """What a tool measured."""

    rate: float
    median_us: float
    cpu_s_per_million: float


def parse_neph(finished: FinishedProcess) -> Figure:
    document = json.loads(finished.output)
    requests = document["requests"]
    if requests["failed"] or requests["error_responses"]:
        sys.exit(f"neph: {requests}")
    cpu = finished.cpu_seconds / (requests["successful"] / 1e6)
    return Figure(document["responses_per_s"], document["response_time"]["p50_ns"] / 1000, cpu)


def parse_loop(finished: FinishedProcess) -> Figure:
    return Figure(*map(float, finished.output.split()))


def parse_wrk(finished: FinishedProcess) -> Figure:
    text = finished.output
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    count = int(re.search(r"(\d+) requests in", text)[1])
    value, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", text).groups()
    median = float(value) * {"us": 1, "ms": 1e3, "s": 1e6}[unit]
    return Figure(rate, median, finished.cpu_seconds / (count / 1e6))


def tools(args: argparse.Namespace, loop: str, connections: int) -> dict[str, tuple]:
    """The command of each tool, and how to read what it prints."""
    seconds = str(args.seconds)
    neph = [args.neph, "load", URL, "--workers", str(connections), "--threads", "1"]
    commands = {
        "neph": ([*neph, "-w", f"{seconds}s", "--format", "json"], parse_neph),
        "C loop": ([loop, SERVER_ADDRESS, PORT, str(connections), seconds], parse_loop),
    }
    if shutil.which("wrk"):
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", URL]
        commands["wrk"] = (wrk, parse_wrk)
    return commands


def measure(pair: Pair, command: list[str], folder: Path, seconds: int) -> FinishedProcess:
    """One run."""
    finished = run(pair.client, command, folder, seconds + 60)
    if finished.status:
        sys.exit(f"{' '.join(command)}: {finished.output[-500:]} {finished.errors[-500:]}")
    return finished


def lateness(pair: Pair, args: argparse.Namespace, folder: Path) -> str:
    """Lateness of 10,000 arrivals per second, median over the rounds."""
    command = [args.neph, "load", URL, "--rate", "10000/s", "--spin", "-w", f"{args.seconds}s"]
    quantiles = []
    for _ in range(args.rounds):
        finished = measure(pair, [*command, "--format", "json"], folder, args.seconds)
        times = json.loads(finished.output)["lateness"]
        quantiles.append((times["p50_ns"] / 1000, times["p99_ns"] / 1000))
    medians = [statistics.median(values) for values in zip(*quantiles, strict=True)]
    return "Arrivals at 10,000/s with --spin: lateness p50 {:.1f} us, p99 {:.1f} us".format(*medians)


def row(connections: int, name: str, figures: dict[str, list[Figure]]) -> tuple[str, ...]:
    """A tool's line of the table."""
    mine, neph = figures[name], figures["neph"]
    pairs = list(zip(neph, mine, strict=True))
    rates = [figure.rate for figure in mine]
    ratio = statistics.median(figure.rate / other.rate for figure, other in pairs)
    cpu_ratio = statistics.median(figure.cpu_s_per_million / other.cpu_s_per_million for figure, other in pairs)
    return (
        str(connections),
        name,
        f"{statistics.median(rates):,.0f}",
        f"{min(rates):,.0f} to {max(rates):,.0f}",
        f"{statistics.median(figure.median_us for figure in mine):.1f}",
        f"{statistics.median(figure.cpu_s_per_million for figure in mine):.2f}",
        "1" if name == "neph" else f"{ratio:.3f}",
        "1" if name == "neph" else f"{cpu_ratio:.3f}",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    args.neph = str(Path(args.neph).resolve())
    environment = Environment.begin()
    figures: dict[int, dict[str, list[Figure]]] = {count: {} for count in CONNECTIONS}
    with tempfile.TemporaryDirectory(prefix="nephbench") as folder_name:
        folder = Path(folder_name)
        loop = str(folder / "load_loop")
        subprocess.run(("cc", "-O2", "-o", loop, Path(__file__).with_name("load_loop.c")), check=True)
        serve = (args.neph, "reflect", "--listen", "0.0.0.0:8080", "--serve", f"c=1024 none port={PORT}")
        with veth_pair(disable_offloads=False) as pair, server(pair.server, serve):
            for _ in range(args.rounds):
                for connections in CONNECTIONS:
                    commands = tools(args, loop, connections)
                    for name in random.sample(list(commands), len(commands)):
                        command, parse = commands[name]
                        finished = measure(pair, command, folder, args.seconds)
                        figures[connections].setdefault(name, []).append(parse(finished))
            late = lateness(pair, args, folder)
    heading = ("connections", "tool", "responses/s, median", "least to most", "p50, us", "CPU s per million")
    rows = [row(count, name, of_count) for count, of_count in figures.items() for name in of_count]
    print(table((*heading, "rate: neph over it", "CPU: neph over it"), rows))
    environment_facts = environment.facts()
    print(f"\n{late}\n{args.rounds} rounds of {args.seconds} s. {sentence(environment_facts)}")
    if args.json:
        values = {
            count: {name: [vars(figure) for figure in runs] for name, runs in of_count.items()}
            for count, of_count in figures.items()
        }
        Path(args.json).write_text(json.dumps({"environment": environment_facts, "figures": values}, indent=1))


if __name__ == "__main__":
    main()
