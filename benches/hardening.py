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


def inside(namespace: str, *command: str) -> tuple[str, ...]:
    return ("nsenter", f"--net=/run/netns/{namespace}", *command)


@contextmanager
def reflectors(pair: Pair, builds: dict[str, Path]) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """A reflector of each build, both running: only the one that is asked works."""
    options = ("-q", "--max-rate", "10000000", "--max-reply-rate", "100Gbit/s")
    processes = {}
    for name, neph in builds.items():
        command = (str(neph), "reflect", *options, "--listen", f"0.0.0.0:{PORTS[name]}")
        processes[name] = subprocess.Popen(inside(pair.server, *command))
    time.sleep(0.5)
    try:
        yield processes
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()


def answered(pair: Pair, loop: Path, how: str, port: int) -> float:
    """Requests answered in a second, one after the other."""
    command = inside(pair.client, str(loop), how, SERVER_ADDRESS, str(port), str(SECONDS))
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def echo(pair: Pair, neph: Path, port: int) -> float:
    """Median service time of WebSocket messages, microseconds."""
    target = f"ws://{SERVER_ADDRESS}:{port}"
    options = ("-i", "0.001", "-c", str(MESSAGES), "--no-icmp", "-q", "--format", "json")
    command = inside(pair.client, str(neph), "ping", target, *options)
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)["flows"][0]["service_ns"]["p50"]["value"] / 1e3


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
        asked = {
            "WebSocket echo, p50 us": lambda name: echo(pair, builds[name], PORTS[name]),
            "UDP round trips/s": lambda name: answered(pair, loop, "udp", PORTS[name]),
            "HTTP transactions/s": lambda name: answered(pair, loop, "http", PORTS[name]),
        }
        for _ in range(options.rounds):
            with reflectors(pair, builds) as processes:
                for what, ask in asked.items():
                    turns: dict[str, list[float]] = {name: [] for name in builds}
                    before = {name: cpu_ticks(process.pid) for name, process in processes.items()}
                    for _ in range(options.turns):
                        for name in random.sample(sorted(builds), 2):
                            turns[name].append(ask(name))
                    for name, process in processes.items():
                        figures.setdefault(what, {}).setdefault(name, []).append(median(turns[name]))
                        if what.endswith("/s"):
                            # A tick is 10 ms.
                            spent = (cpu_ticks(process.pid) - before[name]) * 1e4
                            each = spent / (sum(turns[name]) * SECONDS)
                            cost = f"{what.split()[0]} request, us of processor"
                            figures.setdefault(cost, {}).setdefault(name, []).append(each)
    rows = []
    for what, of in figures.items():
        pairs = [new / old for new, old in zip(of["new"], of["old"], strict=True)]
        old, new = (f"{median(of[name]):,.1f}" for name in ("old", "new"))
        rows.append([what, old, new, f"{median(pairs):.3f}", quartiles(pairs)])
    print(table(["", "old", "new", "new/old", "half of the rounds"], rows))


if __name__ == "__main__":
    main()
