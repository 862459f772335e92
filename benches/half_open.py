#!/usr/bin/env python3
"""What SYN pings leave at their target, as `ss` shows it there: an open port and a closed one.

    python3 benches/half_open.py --neph target/release/neph

Needs root and ss. See README.md for what is measured and how.
"""

import argparse
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

from environment import Environment, sentence
from figures import table
from lab import Lab, document, lab
from namespaces import entered

TOPOLOGY = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies/flows-4-paths.toml"
TARGET, OPEN, CLOSED = "10.83.0.2", 8080, 8081
# The longest round trip of the topology, and what the two hosts may take.
ROUND_TRIP = 0.078
LOOKS_A_SECOND = 20


def sockets(up: Lab, state: str) -> int:
    """How many sockets of the target `ss` shows in this state, at either port."""
    inside = ["nsenter", f"--net=/run/netns/{up.namespace('server')}"]
    ports = f"( sport = :{OPEN} or sport = :{CLOSED} )"
    command = [*inside, "ss", "-Htan", "state", state, ports]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return len(ran.stdout.splitlines())


def ask(asked: argparse.Namespace, up: Lab, port: int) -> dict:
    """A fleet of SYNs; what `ss` saw meanwhile at most, and afterwards."""
    most, over = {"syn-recv": 0, "established": 0}, threading.Event()

    def look() -> None:
        while not over.wait(1 / LOOKS_A_SECOND):
            for state in most:
                most[state] = max(most[state], sockets(up, state))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        command = [asked.neph, "flows", f"syn://{TARGET}:{port}", "--flows", str(asked.flows)]
        command += ["--site", up.namespace("client"), "--interval", "1s"]
        # More than 200 a second to a target are refused unless somebody asks for them.
        command += ["--rate-cap", str(max(asked.flows, 200))]
        command += ["--duration", f"{asked.seconds}s", "--format", "json", "--quiet"]
        tally = document(command, asked.seconds + 60)["tally"]
    finally:
        over.set()
        watcher.join()
    time.sleep(1)
    return {"tally": tally, "most": most, "after": {state: sockets(up, state) for state in most}}


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--flows", type=int, default=512)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    asked.neph = str(Path(asked.neph).resolve())
    environment = Environment.begin()
    with (
        tempfile.TemporaryDirectory() as name,
        lab(asked.neph, TOPOLOGY, f"halfopen{os.getpid()}", Path(name) / "record") as up,
    ):
        with entered(up.namespace("server")):
            listener = socket.create_server((TARGET, OPEN), backlog=1024)
        # It never accepts: only the kernel answers.
        with closing(listener):
            found = {"listening": ask(asked, up, OPEN), "closed": ask(asked, up, CLOSED)}
    rows = [
        [
            *(port, str(of["tally"]["messages"]), str(of["tally"]["replies"])),
            *(str(of["most"]["syn-recv"]), str(of["most"]["established"])),
            *(str(of["after"]["syn-recv"]), str(of["after"]["established"])),
        ]
        for port, of in found.items()
    ]
    heading = ["port", "SYNs", "answered", "half open at once, most", "established, most"]
    print(table([*heading, "half open a second later", "established"], rows))
    print(
        f"\nA SYN is taken back when its answer arrives: {asked.flows} a second are half open for a "
        f"round trip, so about {asked.flows * ROUND_TRIP:.0f} at once."
    )
    told = environment.tell()
    print(f"\n{sentence(told)}")
    if asked.json:
        asked.json.write_text(json.dumps({"environment": told, **found}, indent=1))


if __name__ == "__main__":
    main()
