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

PORT = 8080
SECONDS = 2.0


def inside(namespace: str, *command: str) -> tuple[str, ...]:
    return ("nsenter", f"--net=/run/netns/{namespace}", *command)


@contextmanager
def reflector(pair: Pair, neph: Path) -> Iterator[None]:
    command = (str(neph), "reflect", "-q", "--max-rate", "10000000", "--max-reply-rate", "100Gbit/s")
    process = subprocess.Popen(inside(pair.server, *command, "--listen", f"0.0.0.0:{PORT}"))
    time.sleep(0.5)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def answered(pair: Pair, loop: Path, how: str) -> float:
    """Requests answered in a second, one after the other."""
    command = inside(pair.client, str(loop), how, SERVER_ADDRESS, str(PORT), str(SECONDS))
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def echo(pair: Pair, neph: Path) -> float:
    """Median response time of WebSocket messages, microseconds."""
    target = f"ws://{SERVER_ADDRESS}:{PORT}"
    options = ("-i", "0.001", "-c", "2000", "--no-icmp", "-q", "--format", "json")
    command = inside(pair.client, str(neph), "ping", target, *options)
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)["flows"][0]["service_ns"]["p50"]["value"] / 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neph", type=Path, required=True)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    builds = {"old": options.old, "new": options.neph}
    figures: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder, veth_pair() as pair:
        loop = Path(folder) / "ask_loop"
        source = Path(__file__).with_name("ask_loop.c")
        subprocess.run(("cc", "-O2", "-o", str(loop), str(source)), check=True)
        for _ in range(options.rounds):
            for name in random.sample(sorted(builds), 2):
                with reflector(pair, builds[name]):
                    measured = {
                        "WebSocket echo, p50 us": echo(pair, builds[name]),
                        "UDP round trips/s": answered(pair, loop, "udp"),
                        "HTTP transactions/s": answered(pair, loop, "http"),
                    }
                for what, value in measured.items():
                    figures.setdefault(what, {}).setdefault(name, []).append(value)
    rows = []
    for what, of in figures.items():
        pairs = sorted(new / old for new, old in zip(of["new"], of["old"], strict=True))
        rows.append(
            [
                what,
                f"{median(of['old']):,.1f}",
                f"{median(of['new']):,.1f}",
                f"{median(pairs):.3f}",
                f"{pairs[len(pairs) // 4]:.3f} to {pairs[-1 - len(pairs) // 4]:.3f}",
            ]
        )
    print(table(["", "old", "new", "new/old", "half of the rounds"], rows))


if __name__ == "__main__":
    main()
