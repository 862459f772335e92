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
from lab import Lab, run_json, lab
from namespaces import entered

TOPOLOGY = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies/flows-4-paths.toml"
TARGET, OPEN, CLOSED = "10.83.0.2", 8080, 8081
# The longest round trip of the topology, and what the two hosts may take.
ROUND_TRIP = 0.078
SAMPLES_PER_SECOND = 20


def sockets(lab_up: Lab, state: str) -> int:
    """How many sockets of the target `ss` shows in this state, at either port."""
    nsenter = ["nsenter", f"--net=/run/netns/{lab_up.namespace('server')}"]
    ports = f"( sport = :{OPEN} or sport = :{CLOSED} )"
    command = [*nsenter, "ss", "-Htan", "state", state, ports]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return len(finished.stdout.splitlines())


def send_syns(args: argparse.Namespace, lab_up: Lab, port: int) -> dict:
    """A fleet of SYNs; what `ss` saw meanwhile at most, and afterwards."""
    max_sockets, stopped = {"syn-recv": 0, "established": 0}, threading.Event()

    def sample() -> None:
        while not stopped.wait(1 / SAMPLES_PER_SECOND):
            for state in max_sockets:
                max_sockets[state] = max(max_sockets[state], sockets(lab_up, state))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        command = [args.neph, "flows", f"syn://{TARGET}:{port}", "--flows", str(args.flows)]
        command += ["--site", lab_up.namespace("client"), "--interval", "1s"]
        # More than 200 a second to a target are refused unless somebody asks for them.
        command += ["--rate-cap", str(max(args.flows, 200))]
        command += ["--duration", f"{args.seconds}s", "--format", "json", "--quiet"]
        tally = run_json(command, args.seconds + 60)["tally"]
    finally:
        stopped.set()
        sampler.join()
    time.sleep(1)
    return {"tally": tally, "most": max_sockets, "after": {state: sockets(lab_up, state) for state in max_sockets}}


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--flows", type=int, default=512)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.neph = str(Path(args.neph).resolve())
    environment = Environment.begin()
    with (
        tempfile.TemporaryDirectory() as name,
        lab(args.neph, TOPOLOGY, f"halfopen{os.getpid()}", Path(name) / "record") as lab_up,
    ):
        with entered(lab_up.namespace("server")):
            listener = socket.create_server((TARGET, OPEN), backlog=1024)
        # It never accepts: only the kernel answers.
        with closing(listener):
            results = {"listening": send_syns(args, lab_up, OPEN), "closed": send_syns(args, lab_up, CLOSED)}
    rows = [
        [
            *(port, str(result["tally"]["messages"]), str(result["tally"]["replies"])),
            *(str(result["most"]["syn-recv"]), str(result["most"]["established"])),
            *(str(result["after"]["syn-recv"]), str(result["after"]["established"])),
        ]
        for port, result in results.items()
    ]
    heading = ["port", "SYNs", "answered", "half open at once, most", "established, most"]
    print(table([*heading, "half open a second later", "established"], rows))
    print(
        f"\nA SYN is taken back when its answer arrives: {args.flows} a second are half open for a "
        f"round trip, so about {args.flows * ROUND_TRIP:.0f} at once."
    )
    environment_facts = environment.facts()
    print(f"\n{sentence(environment_facts)}")
    if args.json:
        args.json.write_text(json.dumps({"environment": environment_facts, **results}, indent=1))


if __name__ == "__main__":
    main()
