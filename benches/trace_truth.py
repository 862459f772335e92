#!/usr/bin/env python3
"""neph trace over routers of the lab: are all paths of a diamond found, is each flow's path the one
that it took, and do mtr and scamper see the same hops on a single path?

    python3 benches/trace_truth.py --neph target/release/neph [--runs 200]

Needs root. See README.md for what is measured and how.
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from environment import Environment, sentence
from figures import table
from lab import Lab, document, lab
from link_record import UDP, packets

TOPOLOGY = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies/diamond.toml"
TARGET = "10.87.0.2"
# The link from r0 that leads to each of the four, and its address.
ROUTERS = {f"r0-m{number}": f"10.87.0.{number + 3}" for number in range(1, 5)}
FORK_TTL = 2
FIRST_PORT, SOURCE_PORT = 33_500, 24_000
QUERIES = 20
# A run misses a path with a chance of at most this; more misses than the 99 % quantile say it lied.
MAY_MISS = 0.01


def diamond() -> str:
    """The shipped topology without its changes of routes."""
    return TOPOLOGY.read_text().split("# The way there is drawn anew")[0]


def single_path() -> str:
    """The same with one of the four ways left."""
    head, *blocks = diamond().split("\n[[")
    kept = [block for block in blocks if not any(f'"m{n}"' in block for n in (2, 3, 4))]
    return "\n[[".join([head, *kept])


@dataclass(frozen=True)
class Run:
    """One trace with as many flows as theory asks for."""

    port: int
    # By source port: who answered where the paths part.
    met: dict[int, str | None]
    enough: bool

    @property
    def found(self) -> int:
        """How many of the four."""
        return len(set(self.met.values()) & set(ROUTERS.values()))


def trace(neph: str, up: Lab, port: int) -> Run:
    """All paths to a port nobody listens at: another port, other hashes."""
    command = [neph, "trace", f"udp://{TARGET}:{port}", "--site", up.namespace("client")]
    command += ["--queries", "1", "--rate", "4000", "--hop-rate", "1000", "--timeout", "500ms"]
    told = document([*command, "--format", "json"], 120)
    fork = {
        flow["source_port"]: next(
            (hop["address"] for hop in flow["hops"] if hop["ttl"] == FORK_TTL), None
        )
        for flow in told["flows"]
    }
    return Run(port, fork, told["enough_flows"])


def taken(record: Path) -> dict[tuple[int, int], str]:
    """By source and destination port, the router that a flow's packets went to, by the links."""
    ways: dict[tuple[int, int], str] = {}
    for link, router in ROUTERS.items():
        for packet in packets(record / f"{link}.truth"):
            direction, protocol, ports = packet[1], packet[3], packet[11:13]
            if direction == 0 and protocol == UDP and ways.setdefault(ports, router) != router:
                raise RuntimeError(f"flow {ports} took {ways[ports]} and {router}")
    return ways


def allowed(runs: int) -> int:
    """The most misses of so many runs that are no surprise, 99 % of the time."""
    most, chance = 0, (1 - MAY_MISS) ** runs
    within = chance
    while within < 0.99:
        most += 1
        chance *= (runs - most + 1) / most * MAY_MISS / (1 - MAY_MISS)
        within += chance
    return most


def diamonds(neph: str, runs: int, folder: Path) -> dict:
    """As many traces, each to another port; prints what they found."""
    topology = folder / "diamond.toml"
    topology.write_text(diamond())
    with lab(neph, topology, f"tracing{os.getpid()}", folder / "record") as up:
        traced = []
        for number in range(runs):
            traced.append(trace(neph, up, FIRST_PORT + number))
            if number % 20 == 19:
                print(f"{number + 1} of {runs}", file=sys.stderr)
    ways = taken(folder / "record")
    flows = [(run.port, port, met) for run in traced for port, met in run.met.items()]
    wrong = [flow for flow in flows if flow[2] and ways.get((flow[1], flow[0])) != flow[2]]
    silent = sum(met is None for _, _, met in flows)
    all_four = sum(run.found == len(ROUTERS) for run in traced)
    there = sum(
        len({ways[port, run.port] for port in run.met if (port, run.port) in ways}) == len(ROUTERS)
        for run in traced
    )
    counts = sorted(len(run.met) for run in traced)
    missed = runs - all_four
    rows = [
        ["runs", str(runs)],
        ["flows of a run, least / median / most", f"{counts[0]} / {counts[runs // 2]} / {counts[-1]}"],
        ["found all four paths", f"{all_four} ({100 * all_four / runs:.1f} %)"],
        ["their flows took all four", str(there)],
        ["said themselves that flows did not suffice", str(sum(not run.enough for run in traced))],
        [f"misses that {100 * (1 - MAY_MISS):.0f} % allow, at 99 %", str(allowed(runs))],
        ["flows whose path is the one on record", f"{len(flows) - len(wrong) - silent} of {len(flows)}"],
        ["of the others: nobody answered at the fork", str(silent)],
    ]
    print(table(["diamond", "is"], rows))
    print(f"\n{'As promised' if missed <= allowed(runs) and not wrong else 'NOT as promised'}.")
    return {"runs": runs, "all_four": all_four, "flows": len(flows), "wrong": wrong, "silent": silent}


@dataclass(frozen=True)
class Hop:
    """Who answered, and the median (mtr: mean) round trip in ms."""

    address: str
    trip: float


def _run(up: Lab, command: list[str]) -> str:
    inside = ["nsenter", f"--net=/run/netns/{up.namespace('client')}", *command]
    ran = subprocess.run(inside, capture_output=True, text=True, check=True, timeout=120)
    return ran.stdout


def by_neph(neph: str, up: Lab) -> list[Hop]:
    """One flow, many queries."""
    command = [neph, "trace", f"udp://{TARGET}:{FIRST_PORT}", "--site", up.namespace("client")]
    command += ["--source-port", str(SOURCE_PORT), "--queries", str(QUERIES), "--format", "json"]
    hops = document(command, 120)["flows"][0]["hops"]
    return [Hop(hop["address"], statistics.median(hop["round_trips"]) / 1e6) for hop in hops]


def by_scamper(up: Lab) -> list[Hop]:
    """The same 5-tuple: its Paris traceroute keeps both ports."""
    asked = f"trace -P udp-paris -s {SOURCE_PORT} -d {FIRST_PORT} -q {QUERIES} -Q"
    out = _run(up, ["scamper", "-O", "json", "-c", asked, "-i", TARGET])
    documents = (json.loads(line) for line in out.splitlines())
    found = next(document for document in documents if document["type"] == "trace")
    by_ttl: dict[int, list[dict]] = {}
    for hop in found["hops"]:
        by_ttl.setdefault(hop["probe_ttl"], []).append(hop)
    median = [statistics.median(hop["rtt"] for hop in each) for _, each in sorted(by_ttl.items())]
    names = [each[0]["addr"] for _, each in sorted(by_ttl.items())]
    return [Hop(name, trip) for name, trip in zip(names, median, strict=True)]


def by_mtr(up: Lab) -> list[Hop]:
    """UDP; it changes ports, which on a single path changes nothing."""
    command = ["mtr", "-n", "-u", "-c", str(QUERIES), "-i", "0.1", "--json", TARGET]
    return [Hop(hub["host"], hub["Avg"]) for hub in json.loads(_run(up, command))["report"]["hubs"]]


def single(neph: str, folder: Path) -> dict:
    """Hop by hop beside the other tools; prints the table."""
    topology = folder / "single.toml"
    topology.write_text(single_path())
    tools: dict[str, Callable[[Lab], list[Hop]]] = {"neph trace": lambda up: by_neph(neph, up)}
    tools |= {name: by for name, by in (("scamper", by_scamper), ("mtr", by_mtr)) if shutil.which(name)}
    with lab(neph, topology, f"hops{os.getpid()}", folder / "single") as up:
        found = {name: by(up) for name, by in tools.items()}
    most = max(len(hops) for hops in found.values())
    rows = []
    for number in range(most):
        row = [str(number + 1)]
        for hops in found.values():
            known = number < len(hops)
            row += [hops[number].address, f"{hops[number].trip:.3f}"] if known else ["-", "-"]
        rows.append(row)
    heading = ["hop"] + [cell for name in found for cell in (name, "ms")]
    print(table(heading, rows))
    routes = {name: [hop.address for hop in hops] for name, hops in found.items()}
    agree = all(route == routes["neph trace"] for route in routes.values())
    print(f"\nAll {len(found)} tools {'agree' if agree else 'DISAGREE'} on the {most} hops.")
    off = [
        abs(hop.trip - own.trip)
        for hops in found.values()
        for own, hop in zip(found["neph trace"], hops, strict=False)
    ]
    print(f"Round trips differ from neph's by at most {1000 * max(off, default=math.nan):.0f} us.")
    return {"routes": routes, "agree": agree}


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    neph = str(Path(asked.neph).resolve())
    environment = Environment.begin()
    with tempfile.TemporaryDirectory() as name:
        found = {"single": single(neph, Path(name))}
        print()
        found["diamond"] = diamonds(neph, asked.runs, Path(name))
    told = environment.tell()
    print(f"\n{sentence(told)}")
    if asked.json:
        asked.json.write_text(json.dumps({"environment": told, **found}, indent=1))


if __name__ == "__main__":
    main()
