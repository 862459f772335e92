#!/usr/bin/env python3
"""What an instrument pays for being hardened: two builds of neph, in turns.

    python3 benches/hardening.py --neph target/release/neph --old OTHER

Needs root and cc. See README.md for what is measured and how.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from figures import table
from namespaces import SERVER_ADDRESS, Pair, veth_pair

PORTS = {"old": 8080, "new": 8081}
# Of one turn of asking, and messages of one turn of the WebSocket client.
SECONDS = 0.5
MESSAGES = 500


def nsenter(namespace: str, *command: str) -> tuple[str, ...]:
    return ("nsenter", f"--net=/run/netns/{namespace}", *command)


@contextmanager
def reflectors(pair: Pair, builds: dict[str, Path]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A reflector of each build, both running: only the one that is asked works."""
    options = ("-q", "--max-rate", "10000000", "--max-reply-rate", "100Gbit/s")
    processes = {}
    for name, neph in builds.items():
        command = (str(neph), "reflect", *options, "--listen", f"0.0.0.0:{PORTS[name]}")
        processes[name] = subprocess.Popen(nsenter(pair.server, *command))
    time.sleep(0.5)
    try:
        yield processes
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()


def measure_request_rate(pair: Pair, loop: Path, protocol: str, port: int) -> float:
    """Requests answered in a second, one after the other."""
    command = nsenter(pair.client, str(loop), protocol, SERVER_ADDRESS, str(port), str(SECONDS))
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_echo(pair: Pair, neph: Path, port: int) -> float:
    """Median service time of WebSocket messages, microseconds."""
    target = f"ws://{SERVER_ADDRESS}:{port}"
    options = ("-i", "0.001", "-c", str(MESSAGES), "--no-icmp", "-q", "--format", "json")
    command = nsenter(pair.client, str(neph), "ping", target, *options)
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)["flows"][0]["service_ns"]["p50"]["value"] / 1e3


def cpu_ticks(pid: int) -> int:
    """Processor time of a process so far, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def quartiles(values: list[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[len(ordered) // 4]:.3f} to {ordered[-1 - len(ordered) // 4]:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neph", type=Path, required=True)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=10, help="pairs of processes (default 10)")
    parser.add_argument("--turns", type=int, default=8, help="turns of each build in a round (default 8)")
    options = parser.parse_args()
    builds = {"old": options.old, "new": options.neph}
    # Of each thing measured, one figure a round and build: the median of its turns.
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, veth_pair() as pair:
        loop = Path(folder) / "ask_loop"
        source = Path(__file__).with_name("ask_loop.c")
        subprocess.run(("cc", "-O2", "-o", str(loop), str(source)), check=True)
        metrics = {
            "WebSocket echo, p50 us": lambda name: measure_echo(pair, builds[name], PORTS[name]),
            "UDP round trips/s": lambda name: measure_request_rate(pair, loop, "udp", PORTS[name]),
            "HTTP transactions/s": lambda name: measure_request_rate(pair, loop, "http", PORTS[name]),
        }
        for _ in range(options.rounds):
            with reflectors(pair, builds) as processes:
                for metric, measure in metrics.items():
                    turn_values: dict[str, list[float]] = {name: [] for name in builds}
                    ticks_before = {name: cpu_ticks(process.pid) for name, process in processes.items()}
                    for _ in range(options.turns):
                        for name in random.sample(sorted(builds), 2):
                            turn_values[name].append(measure(name))
                    for name, process in processes.items():
                        figures.setdefault(metric, {}).setdefault(name, []).append(median(turn_values[name]))
                        if metric.endswith("/s"):
                            # A tick is 10 ms.
                            cpu_us = (cpu_ticks(process.pid) - ticks_before[name]) * 1e4
                            us_per_request = cpu_us / (sum(turn_values[name]) * SECONDS)
                            cost_metric = f"{metric.split()[0]} request, us of processor"
                            figures.setdefault(cost_metric, {}).setdefault(name, []).append(us_per_request)
    rows = []
    for metric, values in figures.items():
        ratios = [new / old for new, old in zip(values["new"], values["old"], strict=True)]
        old, new = (f"{median(values[name]):,.1f}" for name in ("old", "new"))
        rows.append([metric, old, new, f"{median(ratios):.3f}", quartiles(ratios)])
    print(table(["", "old", "new", "new/old", "half of the rounds"], rows))


if __name__ == "__main__":
    main()
