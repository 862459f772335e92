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
from lab import Lab, run_json, lab
from link_record import UDP, packets

TOPOLOGY = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies/diamond.toml"
TARGET = "10.87.0.2"
# The link from r0 that leads to each of the four, and its address.
ROUTERS = {f"r0-m{number}": f"10.87.0.{number + 3}" for number in range(1, 5)}
FORK_TTL = 2
FIRST_PORT, SOURCE_PORT = 33_500, 24_000
QUERIES = 20
# A run misses a path with a chance of at most this; more misses than the 99 % quantile say it lied.
MISS_PROBABILITY = 0.01


def diamond() -> str:
    """The shipped topology without its changes of routes."""
    return TOPOLOGY.read_text().split("# The way there is drawn anew")[0]


def single_path() -> str:
    """The same with one of the four ways left."""
    head, *blocks = diamond().split("\n[[")
    kept_blocks = [block for block in blocks if not any(f'"m{n}"' in block for n in (2, 3, 4))]
    return "\n[[".join([head, *kept_blocks])


@dataclass(frozen=True)
class TraceRun:
    """One trace with as many flows as theory asks for."""

    port: int
    # By source port: the router that answered where the paths part.
    fork_routers: dict[int, str | None]
    has_enough_flows: bool

    @property
    def path_count(self) -> int:
        """How many of the four paths it found."""
        return len(set(self.fork_routers.values()) & set(ROUTERS.values()))


def trace(neph: str, lab_up: Lab, port: int) -> TraceRun:
    """All paths to a port nobody listens at: another port, other hashes."""
    command = [neph, "trace", f"udp://{TARGET}:{port}", "--site", lab_up.namespace("client")]
    command += ["--queries", "1", "--rate", "4000", "--hop-rate", "1000", "--timeout", "500ms"]
    trace_result = run_json([*command, "--format", "json"], 120)
    fork_routers = {
        flow["source_port"]: next(
            (hop["address"] for hop in flow["hops"] if hop["ttl"] == FORK_TTL), None
        )
        for flow in trace_result["flows"]
    }
    return TraceRun(port, fork_routers, trace_result["enough_flows"])


def paths_from_records(record: Path) -> dict[tuple[int, int], str]:
    """By source and destination port, the router that a flow's packets went to, by the links."""
    routers: dict[tuple[int, int], str] = {}
    for link, router in ROUTERS.items():
        for packet in packets(record / f"{link}.truth"):
            direction, protocol, ports = packet[1], packet[3], packet[11:13]
            if direction == 0 and protocol == UDP and routers.setdefault(ports, router) != router:
                raise RuntimeError(f"flow {ports} took {routers[ports]} and {router}")
    return routers


def max_expected_misses(runs: int) -> int:
    """The 99 % quantile of the number of misses in `runs` runs."""
    misses, chance = 0, (1 - MISS_PROBABILITY) ** runs
    cumulative = chance
    while cumulative < 0.99:
        misses += 1
        chance *= (runs - misses + 1) / misses * MISS_PROBABILITY / (1 - MISS_PROBABILITY)
        cumulative += chance
    return misses


def check_diamond(neph: str, runs: int, folder: Path) -> dict:
    """As many traces, each to another port; prints what they found."""
    topology = folder / "diamond.toml"
    topology.write_text(diamond())
    with lab(neph, topology, f"tracing{os.getpid()}", folder / "record") as lab_up:
        runs_done = []
        for number in range(runs):
            runs_done.append(trace(neph, lab_up, FIRST_PORT + number))
            if number % 20 == 19:
                print(f"{number + 1} of {runs}", file=sys.stderr)
    routers = paths_from_records(folder / "record")
    flows = [(run.port, port, router) for run in runs_done for port, router in run.fork_routers.items()]
    wrong_flows = [flow for flow in flows if flow[2] and routers.get((flow[1], flow[0])) != flow[2]]
    silent = sum(router is None for _, _, router in flows)
    all_four = sum(run.path_count == len(ROUTERS) for run in runs_done)
    all_four_taken = sum(
        len({routers[port, run.port] for port in run.fork_routers if (port, run.port) in routers}) == len(ROUTERS)
        for run in runs_done
    )
    flow_counts = sorted(len(run.fork_routers) for run in runs_done)
    missed_runs = runs - all_four
    rows = [
        ["runs", str(runs)],
        ["flows of a run, least / median / most", f"{flow_counts[0]} / {flow_counts[runs // 2]} / {flow_counts[-1]}"],
        ["found all four paths", f"{all_four} ({100 * all_four / runs:.1f} %)"],
        ["their flows took all four", str(all_four_taken)],
        ["said themselves that flows did not suffice", str(sum(not run.has_enough_flows for run in runs_done))],
        [f"misses that {100 * (1 - MISS_PROBABILITY):.0f} % allow, at 99 %", str(max_expected_misses(runs))],
        ["flows whose path is the one on record", f"{len(flows) - len(wrong_flows) - silent} of {len(flows)}"],
        ["of the others: nobody answered at the fork", str(silent)],
    ]
    print(table(["diamond", "is"], rows))
    print(f"\n{'As promised' if missed_runs <= max_expected_misses(runs) and not wrong_flows else 'NOT as promised'}.")
    return {"runs": runs, "all_four": all_four, "flows": len(flows), "wrong": wrong_flows, "silent": silent}


@dataclass(frozen=True)
class Hop:
    """Who answered, and the median (mtr: mean) round trip in ms."""

    address: str
    rtt_ms: float


def _run_in_client(lab_up: Lab, command: list[str]) -> str:
    inside = ["nsenter", f"--net=/run/netns/{lab_up.namespace('client')}", *command]
    finished = subprocess.run(inside, capture_output=True, text=True, check=True, timeout=120)
    return finished.stdout


def neph_hops(neph: str, lab_up: Lab) -> list[Hop]:
    """One flow, many queries."""
    command = [neph, "trace", f"udp://{TARGET}:{FIRST_PORT}", "--site", lab_up.namespace("client")]
    command += ["--source-port", str(SOURCE_PORT), "--queries", str(QUERIES), "--format", "json"]
    hops = run_json(command, 120)["flows"][0]["hops"]
    return [Hop(hop["address"], statistics.median(hop["round_trips"]) / 1e6) for hop in hops]


def scamper_hops(lab_up: Lab) -> list[Hop]:
    """The same 5-tuple: its Paris traceroute keeps both ports."""
    trace_options = f"trace -P udp-paris -s {SOURCE_PORT} -d {FIRST_PORT} -q {QUERIES} -Q"
    output = _run_in_client(lab_up, ["scamper", "-O", "json", "-c", trace_options, "-i", TARGET])
    documents = (json.loads(line) for line in output.splitlines())
    trace_document = next(document for document in documents if document["type"] == "trace")
    by_ttl: dict[int, list[dict]] = {}
    for hop in trace_document["hops"]:
        by_ttl.setdefault(hop["probe_ttl"], []).append(hop)
    medians = [statistics.median(hop["rtt"] for hop in each) for _, each in sorted(by_ttl.items())]
    names = [each[0]["addr"] for _, each in sorted(by_ttl.items())]
    return [Hop(name, rtt_ms) for name, rtt_ms in zip(names, medians, strict=True)]


def mtr_hops(lab_up: Lab) -> list[Hop]:
    """UDP; it changes ports, which on a single path changes nothing."""
    command = ["mtr", "-n", "-u", "-c", str(QUERIES), "-i", "0.1", "--json", TARGET]
    return [Hop(hub["host"], hub["Avg"]) for hub in json.loads(_run_in_client(lab_up, command))["report"]["hubs"]]


def compare_single_path(neph: str, folder: Path) -> dict:
    """Hop by hop beside the other tools; prints the table."""
    topology = folder / "single.toml"
    topology.write_text(single_path())
    tools: dict[str, Callable[[Lab], list[Hop]]] = {"neph trace": lambda lab_up: neph_hops(neph, lab_up)}
    tools |= {name: measure for name, measure in (("scamper", scamper_hops), ("mtr", mtr_hops)) if shutil.which(name)}
    with lab(neph, topology, f"hops{os.getpid()}", folder / "single") as lab_up:
        results = {name: measure(lab_up) for name, measure in tools.items()}
    hop_count = max(len(hops) for hops in results.values())
    rows = []
    for number in range(hop_count):
        row = [str(number + 1)]
        for hops in results.values():
            has_hop = number < len(hops)
            row += [hops[number].address, f"{hops[number].rtt_ms:.3f}"] if has_hop else ["-", "-"]
        rows.append(row)
    heading = ["hop"] + [cell for name in results for cell in (name, "ms")]
    print(table(heading, rows))
    routes = {name: [hop.address for hop in hops] for name, hops in results.items()}
    is_agreed = all(route == routes["neph trace"] for route in routes.values())
    print(f"\nAll {len(results)} tools {'agree' if is_agreed else 'DISAGREE'} on the {hop_count} hops.")
    rtt_differences = [
        abs(hop.rtt_ms - neph_hop.rtt_ms)
        for hops in results.values()
        for neph_hop, hop in zip(results["neph trace"], hops, strict=False)
    ]
    print(f"Round trips differ from neph's by at most {1000 * max(rtt_differences, default=math.nan):.0f} us.")
    return {"routes": routes, "agree": is_agreed}


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    neph = str(Path(args.neph).resolve())
    environment = Environment.begin()
    with tempfile.TemporaryDirectory() as name:
        results = {"single": compare_single_path(neph, Path(name))}
        print()
        results["diamond"] = check_diamond(neph, args.runs, Path(name))
    environment_facts = environment.facts()
    print(f"\n{sentence(environment_facts)}")
    if args.json:
        args.json.write_text(json.dumps({"environment": environment_facts, **results}, indent=1))


if __name__ == "__main__":
    main()
