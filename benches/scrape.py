#!/usr/bin/env python3
"""Whether a scrape disturbs a measurement: `neph ping` with and without a scraper.

    cargo build --release -p neph
    python3 benches/scrape.py --neph target/release/neph [--rounds 16] [--json scrape.json]

Two network namespaces joined by a veth pair. `neph ping --prometheus` measures a reflector in the other one.
Each round has every variant once, in a new random order: nobody scrapes, and a scraper in the other namespace
asks 10 times a second (`--rate`), in the text format and in protobuf. Ratios are of the same round, and their
median counts. Needs root.
"""

import argparse
import http.client
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from environment import Environment, sentence
from figures import micros, table
from namespaces import CLIENT_ADDRESS, SERVER_ADDRESS, Pair, veth_pair
from processes import run, server

METRICS_PORT = 9400
REFLECTOR_PORT = 8080
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
# What the scraper accepts, by variant; the first is without one.
VARIANTS = {"nobody scrapes": None, "text": "text/plain;version=0.0.4", "protobuf": PROTOBUF}
BASELINE = next(iter(VARIANTS))
QUANTILES = ("p50", "p99")


def scrape_until_stdin_closes(accept: str, rate: float) -> None:
    """The scraper, as a process of its own: asks until standard input ends, then prints how often it was answered."""
    import select

    answered, started = 0, time.monotonic()
    for number in range(1, 1 << 31):
        wait_s = started + number / rate - time.monotonic()
        if select.select([sys.stdin], [], [], max(wait_s, 0))[0]:
            break
        connection = http.client.HTTPConnection(CLIENT_ADDRESS, METRICS_PORT, timeout=5)
        try:
            connection.request("GET", "/metrics", headers={"Accept": accept})
            answer = connection.getresponse()
            body = answer.read()
            kind = answer.headers["Content-Type"].split(";")[0]
            has_metrics = answer.status == 200 and b"neph_ping_messages_total" in body
            answered += has_metrics and kind == accept.split(";")[0]
        except OSError:
            # Before it listens, and after its end.
            pass
        finally:
            connection.close()
    print(answered)


@contextmanager
def scraper(pair: Pair, accept: str | None, rate: float, counts: list[int]) -> Iterator[None]:
    """A scraper in the reflector's namespace for as long as the block lasts; how often it was answered is added."""
    if accept is None:
        yield
        return
    command = ["nsenter", f"--net=/run/netns/{pair.server}", sys.executable, __file__]
    command += ["--scrape", accept, "--rate", str(rate)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield
    finally:
        counts.append(int(child.communicate()[0] or 0))


def ping(args: argparse.Namespace, pair: Pair, folder: Path) -> dict[str, float]:
    """Quantiles of response time, nanoseconds."""
    command = [args.neph, "ping", f"udp://{SERVER_ADDRESS}:{REFLECTOR_PORT}", "--no-icmp", "--quiet"]
    command += ["--format", "json", "--count", str(args.count), "--interval", f"{args.interval}ms"]
    command += ["--prometheus", f"{CLIENT_ADDRESS}:{METRICS_PORT}"]
    limit = args.count * args.interval / 1000 + 30
    finished = run(pair.client, command, folder, limit)
    if finished.status != 0:
        sys.exit(f"neph ping: {finished.errors}")
    flow = json.loads(finished.output)["flows"][0]
    if flow["tally"]["lost"] or flow["tally"]["failed"]:
        print(f"lost or not sent: {flow['tally']}", file=sys.stderr)
    found = {name: flow["response_ns"][name] for name in QUANTILES}
    if any(result is None for result in found.values()):
        sys.exit("p99 needs 299 messages: --count")
    return {name: result["value"] for name, result in found.items()}


def results_table(rounds: Sequence[dict[str, dict[str, float]]], counts: dict[str, list[int]]) -> str:
    """Medians over rounds, and the median of the ratios of each round."""
    heading = ["variant", *(f"{name} us" for name in QUANTILES), *(f"{name} ratio" for name in QUANTILES)]
    rows = []
    for variant in VARIANTS:
        medians = [statistics.median(result[variant][name] for result in rounds) for name in QUANTILES]
        ratios = [
            statistics.median(result[variant][name] / result[BASELINE][name] for result in rounds) for name in QUANTILES
        ]
        scrapes = statistics.median(counts[variant]) if counts[variant] else 0
        rows.append([variant, *map(micros, medians), *(f"{ratio:.3f}" for ratio in ratios), f"{scrapes:.0f}"])
    return table([*heading, "scrapes a run"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", default="target/release/neph")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--count", type=int, default=2000, help="messages of a run; 299 at least")
    parser.add_argument("--interval", type=float, default=5, help="milliseconds between messages")
    parser.add_argument("--rate", type=float, default=10, help="scrapes a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--scrape", metavar="ACCEPT", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.scrape:
        scrape_until_stdin_closes(args.scrape, args.rate)
        return
    environment, random_order = Environment.begin(), random.Random(args.seed)
    rounds: list[dict[str, dict[str, float]]] = []
    counts: dict[str, list[int]] = {variant: [] for variant in VARIANTS}
    reflector_command = [args.neph, "reflect", "--listen", f"{SERVER_ADDRESS}:{REFLECTOR_PORT}"]
    with veth_pair(disable_offloads=False) as pair, tempfile.TemporaryDirectory() as folder, server(pair.server, reflector_command):
        time.sleep(1)
        for _ in range(args.rounds):
            result = {}
            for variant in random_order.sample(list(VARIANTS), len(VARIANTS)):
                with scraper(pair, VARIANTS[variant], args.rate, counts[variant]):
                    result[variant] = ping(args, pair, Path(folder))
            rounds.append(result)
    environment_facts = environment.facts()
    print(results_table(rounds, counts))
    print(f"\n{sentence(environment_facts)}")
    if args.json:
        args.json.write_text(json.dumps({"environment": environment_facts, "rounds": rounds, "scrapes": counts}, indent=1))


if __name__ == "__main__":
    main()
