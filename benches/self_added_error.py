#!/usr/bin/env python3
"""What each tool adds to a round trip: reported minus true, the truth being a capture.

    python3 benches/self_added_error.py --neph target/release/neph [--json FILE]

Needs root (namespaces, a packet socket). See README.md for what is measured and how.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from rtt_tools import NEPH_PORT, SOCKPERF_PORT, RttTool, Task, rtt_tools
from capture import Capture
from environment import Environment, sentence
from exchanges import Exchange, busiest_flow, exchanges
from figures import micros, quantile, signed_micros, table
from namespaces import SERVER_ADDRESS, Pair, veth_pair
from processes import run, server
from matching import Matching, Series, match

QUANTILES = (0.5, 0.99)


@dataclass
class Result:
    """One figure of one tool, over all rounds."""

    tool: str
    neph_counterpart: str
    figure: str
    matching: str
    reported: list[float] = field(default_factory=list)
    truth: list[float] = field(default_factory=list)
    # Reported minus true, for each matched message.
    errors: list[float] = field(default_factory=list)
    # Reported minus true quantile of each round, if the tool reports only quantiles.
    differences: dict[float, list[float]] = field(default_factory=dict)
    # Median error of each round: whether the rounds agree.
    medians: list[float] = field(default_factory=list)

    def error(self, p: float) -> float | None:
        """The error's p-quantile; if the tool reports only quantiles, the median difference of the rounds."""
        if self.errors:
            return quantile(self.errors, p)
        rounds = self.differences.get(p)
        return quantile(rounds, 0.5) if rounds else None


Results = dict[tuple[str, str], Result]


def add_run(results: Results, tool: RttTool, series: Series, captured_exchanges: list[Exchange]) -> None:
    """Adds the figure of one run to the results."""
    if series.matching is not Matching.QUANTILES and not series.messages:
        return
    new_result = Result(tool.name, tool.neph_counterpart, series.figure, series.matching.value)
    if series.matching is Matching.QUANTILES:
        truth = [series.truth_ns(exchange) for exchange in captured_exchanges]
        differences = {p: series.quantiles[p] - quantile(truth, p) for p in QUANTILES}
        result = results.setdefault((tool.name, series.figure), new_result)
        for p, difference in differences.items():
            result.differences.setdefault(p, []).append(difference)
        result.truth += truth
        result.medians.append(differences[0.5])
        return
    matched = match(series, captured_exchanges)
    errors = [pair.reported - pair.truth for pair in matched]
    result = results.setdefault((tool.name, series.figure), new_result)
    result.errors += errors
    result.medians.append(quantile(errors, 0.5))
    result.reported += [pair.reported for pair in matched]
    result.truth += [pair.truth for pair in matched]


def measure(pair: Pair, tool: RttTool, arguments: argparse.Namespace, results: Results) -> None:
    """One run of one tool."""
    with tempfile.TemporaryDirectory() as name, Capture(pair.client) as capture:
        folder = Path(name)
        task = Task(arguments.count, arguments.interval, folder)
        finished = run(pair.client, tool.command(task), folder, 30)
        time.sleep(0.05)
        captured_exchanges = exchanges(capture.packets())
        if finished.status != 0:
            raise RuntimeError(f"{tool.name} ended with {finished.status}: {finished.errors[-300:]}")
        for series in tool.read(finished.output, folder):
            is_single_flow = not series.new_connection and series.matching is not Matching.BY_WALL_CLOCK
            exchanges_of_tool = busiest_flow(captured_exchanges) if is_single_flow else captured_exchanges
            add_run(results, tool, series, exchanges_of_tool)


def servers(pair: Pair, neph: str) -> ExitStack:
    """The answering halves of all tools, in the server's namespace."""
    stack = ExitStack()
    listen = f"{SERVER_ADDRESS}:{NEPH_PORT}"
    sockperf = ("sockperf", "server", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT))
    commands = [(neph, "reflect", "--listen", listen, "--tls", "--quiet")]
    if shutil.which("sockperf"):
        commands += [sockperf, (*sockperf, "--tcp")]
    if shutil.which("irtt"):
        commands += [("irtt", "server", "-i", "0", "-b", SERVER_ADDRESS)]
    for command in commands:
        stack.enter_context(server(pair.server, command))
    return stack


def markdown(results: Results) -> str:
    """The table: microseconds."""
    heading = ["tool", "figure", "n", "true p50", "error p50", "error p99", "rounds' p50"]
    heading += ["against neph", "matched"]
    rows = []
    for result in sorted(results.values(), key=lambda each: (each.neph_counterpart, each.figure, each.tool)):
        neph_result = results.get((result.neph_counterpart, result.figure))
        ratio = "-"
        neph_error, tool_error = neph_result.error(0.5) if neph_result else None, result.error(0.5)
        if neph_result is not result and neph_error and tool_error is not None and neph_error > 0:
            ratio = f"{tool_error / neph_error:.1f}x"
        spread = f"{signed_micros(min(result.medians))} to {signed_micros(max(result.medians))}"
        rows.append(
            [
                *(result.tool, result.figure, str(len(result.truth))),
                micros(quantile(result.truth, 0.5)),
                *(signed_micros(result.error(p)) for p in QUANTILES),
                *(spread, ratio, result.matching),
            ]
        )
    return table(heading, rows)


def as_json(results: Results, environment_facts: dict[str, str | int | float]) -> str:
    """Everything a later comparison needs, nanoseconds."""
    rows = []
    for result in results.values():
        rows.append(
            {
                **{"tool": result.tool, "figure": result.figure, "matching": result.matching},
                **{"n": len(result.truth), "round_medians_ns": result.medians},
                "true_ns": {str(p): quantile(result.truth, p) for p in QUANTILES},
                "error_ns": {str(p): result.error(p) for p in QUANTILES},
            }
        )
    return json.dumps({"environment": environment_facts, "results": rows}, indent=2)


def parse_arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", default="target/release/neph", help="the program to measure")
    parser.add_argument("--oha", default="oha", help="where oha is, if not in PATH")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=250, help="messages in each round")
    parser.add_argument("--interval", type=int, default=10, help="between messages, ms")
    parser.add_argument("--only", help="tools whose name contains this")
    parser.add_argument("--seed", type=int, default=None, help="order of the rounds")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


def main() -> int:
    """Rounds over all tools, each in a new random order."""
    arguments = parse_arguments()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    order = random.Random(seed)
    tools = [tool for tool in rtt_tools(arguments.neph, arguments.oha) if shutil.which(tool.program)]
    if arguments.only:
        tools = [tool for tool in tools if arguments.only in tool.name]
    results: Results = {}
    failures: list[str] = []
    environment = Environment.begin()
    with veth_pair() as pair, servers(pair, arguments.neph):
        for _ in range(arguments.rounds):
            order.shuffle(tools)
            for tool in tools:
                try:
                    measure(pair, tool, arguments, results)
                except (RuntimeError, ValueError) as error:
                    failures.append(f"{tool.name}: {error}")
    environment_facts = {**environment.facts(), "rounds": arguments.rounds, "interval, ms": arguments.interval}
    environment_facts["seed"] = seed
    print(markdown(results))
    print(f"\nMicroseconds. {sentence(environment_facts)}")
    for failure in failures:
        print(f"left out: {failure}", file=sys.stderr)
    if arguments.json:
        arguments.json.write_text(as_json(results, environment_facts))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
