#!/usr/bin/env python3
"""Transactions per second: neph rr, a C loop with nothing but the calls, netperf, sockperf and qperf.

    cargo build --release -p neph
    python3 benches/rr.py --neph target/release/neph [--netperf FOLDER] [--core 1] [--json rr.json]

Two network namespaces joined by a veth pair. All tools run in each round, in a new random order; ratios
are of the same round, and their median counts. netperf is taken from FOLDER (netperf and netserver), or
from PATH where it is there; sockperf and qperf likewise. Needs root.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from environment import Environment, sentence
from figures import table
from namespaces import SERVER_ADDRESS, Pair, veth_pair
from processes import run, server

# Payload of a request and a reply: the least that neph's datagrams have.
SIZES = {"udp": (16, 16), "tcp": (16, 16), "connect": (16, 16)}
NAMES = {"udp": "UDP_RR", "tcp": "TCP_RR", "connect": "TCP_CRR"}
C_PORT = "7421"


@dataclass(frozen=True)
class Figure:
    """What a tool measured."""

    rate: float
    median_us: float | None


@dataclass(frozen=True)
class Tool:
    """A server, a client, and how to read what the client prints."""

    name: str
    kind: str
    server_command: Sequence[str]
    client_command: Sequence[str]
    read: Callable[[str], Figure]


def parse_neph(text: str) -> Figure:
    document = json.loads(text)
    if document["lost"] or document["fault"]:
        sys.exit(f"neph: {document['lost']} lost, {document['fault']}")
    return Figure(document["transactions_per_s"], document["rtt"]["p50_ns"] / 1000)


def parse_loop(text: str) -> Figure:
    rate, median = text.split()
    return Figure(float(rate), float(median))


def parse_netperf(text: str) -> Figure:
    # With -o the last line has the fields that were asked for.
    rate, median = text.strip().splitlines()[-1].split(",")
    return Figure(float(rate), float(median))


def parse_sockperf(text: str) -> Figure:
    """Half round trips in microseconds; so many within the valid duration."""
    fields = text.replace("=", " ").replace(";", " ").split()
    seconds, count = float(fields[fields.index("RunTime") + 1]), float(fields[fields.index("SentMessages") + 1])
    line = next(line for line in text.splitlines() if "percentile 50.000" in line)
    return Figure(count / seconds, 2 * float(line.split()[-1]))


def parse_qperf(text: str) -> Figure:
    """Its latency is half a round trip."""
    line = next(line for line in text.splitlines() if "latency" in line)
    value, unit = line.split("=")[1].split()
    half = float(value) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit]
    return Figure(1 / (2 * half), None)


def tools(args: argparse.Namespace, loop: str) -> list[Tool]:
    """What is there of them."""
    available = []
    for kind, (request, reply) in SIZES.items():
        sizes = (str(request), str(reply))
        client = [args.neph, "rr", SERVER_ADDRESS, f"--{kind}", "-w", f"{args.seconds}s"]
        client += ["--request", sizes[0], "--reply", sizes[1], "--format", "json"]
        available.append(Tool("neph", kind, [args.neph, "throughput", "serve"], client, parse_neph))
        loop_arguments = [kind, SERVER_ADDRESS, C_PORT, *sizes]
        for name, program in (("C loop", loop), ("C loop, timeouts", f"{loop}_timeout")):
            client_command = [program, "ask", *loop_arguments, str(args.seconds)]
            available.append(Tool(name, kind, [program, "serve", *loop_arguments], client_command, parse_loop))
        folder = args.netperf or None
        netperf, netserver = shutil.which("netperf", path=folder), shutil.which("netserver", path=folder)
        if netperf and netserver:
            test = {"udp": "udp_rr", "tcp": "tcp_rr", "connect": "tcp_crr"}[kind]
            client_command = [netperf, "-H", SERVER_ADDRESS, "-t", test, "-l", str(args.seconds), "-P", "0", "--"]
            client_command += ["-r", ",".join(sizes), "-o", "throughput,p50_latency"]
            available.append(Tool("netperf", kind, [netserver, "-D"], client_command, parse_netperf))
        sockperf = shutil.which("sockperf")
        if sockperf and kind != "connect":
            tcp = ["--tcp"] if kind == "tcp" else []
            server_command = [sockperf, "server", "-i", SERVER_ADDRESS, "-p", "7422", *tcp]
            client_command = [sockperf, "ping-pong", "-i", SERVER_ADDRESS, "-p", "7422", *tcp]
            client_command += ["-t", str(args.seconds), "-m", sizes[0]]
            available.append(Tool("sockperf", kind, server_command, client_command, parse_sockperf))
        qperf = shutil.which("qperf")
        if qperf and kind != "connect":
            client_command = [qperf, SERVER_ADDRESS, "-t", str(args.seconds), "-m", sizes[0], f"{kind}_lat"]
            available.append(Tool("qperf", kind, [qperf], client_command, parse_qperf))
    return available


def measure(pair: Pair, tool: Tool, folder: Path, args: argparse.Namespace) -> Figure:
    """One run."""
    pin_command = ("taskset", "-c", str(args.core)) if args.core is not None else ()
    with server(pair.server, (*pin_command, *tool.server_command)):
        finished = run(pair.client, (*pin_command, *tool.client_command), folder, args.seconds + 60)
    if finished.status:
        sys.exit(f"{' '.join(tool.client_command)}: {finished.output[-500:]} {finished.errors[-500:]}")
    return tool.read(finished.output)


def row(tool: Tool, figures: dict[str, dict[str, list[Figure]]]) -> Sequence[str]:
    """A tool's line of the table."""
    tool_figures = figures[tool.kind][tool.name]
    rates = [figure.rate for figure in tool_figures]
    medians = [figure.median_us for figure in tool_figures if figure.median_us is not None]
    neph = figures[tool.kind]["neph"]
    ratio = statistics.median(figure.rate / other.rate for figure, other in zip(neph, tool_figures, strict=True))
    return (
        NAMES[tool.kind],
        tool.name,
        f"{statistics.median(rates):,.0f}",
        f"{min(rates):,.0f} to {max(rates):,.0f}",
        f"{statistics.median(medians):.1f}" if medians else "-",
        "1" if tool.name == "neph" else f"{ratio:.3f}",
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", required=True)
    parser.add_argument("--netperf", help="the folder of netperf and netserver")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--core", type=int, help="both ends on this core: none is ever idle")
    parser.add_argument("--only", nargs="*", help="these tools")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.neph = str(Path(args.neph).resolve())
    environment = Environment.begin()
    with tempfile.TemporaryDirectory(prefix="nephbench") as folder_name:
        folder = Path(folder_name)
        loop = str(folder / "rr_loop")
        source = Path(__file__).with_name("rr_loop.c")
        subprocess.run(("cc", "-O2", "-o", loop, source), check=True)
        subprocess.run(("cc", "-O2", "-DTIMEOUT", "-o", f"{loop}_timeout", source), check=True)
        selected_tools = [tool for tool in tools(args, loop) if not args.only or tool.name in args.only]
        figures: dict[str, dict[str, list[Figure]]] = {}
        with veth_pair(disable_offloads=False) as pair:
            for _ in range(args.rounds):
                for tool in random.sample(selected_tools, len(selected_tools)):
                    figure = measure(pair, tool, folder, args)
                    figures.setdefault(tool.kind, {}).setdefault(tool.name, []).append(figure)
    heading = ("test", "tool", "transactions/s, median", "least to most", "p50, us", "neph over it")
    print(table(heading, [row(tool, figures) for tool in selected_tools]))
    environment_facts = environment.facts()
    where = "as the kernel places them" if args.core is None else "both ends on one core"
    print(f"\n{args.rounds} rounds of {args.seconds} s, {where}. {sentence(environment_facts)}")
    if args.json:
        figures_as_json = {
            kind: {name: [[figure.rate, figure.median_us] for figure in runs] for name, runs in kind_figures.items()}
            for kind, kind_figures in figures.items()
        }
        Path(args.json).write_text(json.dumps({"environment": environment_facts, "figures": figures_as_json}, indent=1))


if __name__ == "__main__":
    main()
