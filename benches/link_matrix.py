#!/usr/bin/env python3
"""How exactly the lab's links keep their settings: 60 settings, configured against measured.

    python3 benches/link_matrix.py --neph target/release/neph [--json FILE]

Needs root. Each setting is one link with the same features in both directions, measured by
`neph lab verify` in a lab of four links at a time. See README.md for what is measured and how.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from environment import Environment, sentence
from figures import quantile, signed_micros, table

DELAYS_MS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 300)
LOSSES_PERCENT = (0.1, 1, 5, 10)
RATES_MBIT = (1, 10, 100, 1000)
# Bytes; a second must fill and drain it, or verify cannot tell its size.
QUEUES = {1: "16KiB", 10: "64KiB", 100: "256KiB", 1000: "1MiB"}
LINKS_IN_A_LAB = 4
# The limits, nanoseconds.
MEDIAN_WITHIN, P99_WITHIN = 20_000, 100_000


def settings() -> Iterator[str]:
    """The features of 60 links: each delay alone, with two losses, with a rate, with both."""
    for number, delay in enumerate(DELAYS_MS):
        delay_only = f'delay = "{delay}ms"'
        rate = RATES_MBIT[number % 4]
        rate_and_queue = f'rate = "{rate}Mbit/s"\nqueue = "{QUEUES[rate]}"'
        low, high = LOSSES_PERCENT[number % 2], LOSSES_PERCENT[2 + number % 2]
        yield delay_only
        yield f'{delay_only}\nloss = "{low}%"'
        yield f'{delay_only}\nloss = "{high}%"'
        yield f"{delay_only}\n{rate_and_queue}"
        yield f'{delay_only}\n{rate_and_queue}\nloss = "{low}%"'


def topology(links: list[str]) -> str:
    """A hub, and one site behind each link."""
    parts = ['version = 1\n[[site]]\nname = "hub"\naddress = "10.60.0.1"\n']
    for number, features in enumerate(links, start=1):
        parts.append(f'[[site]]\nname = "s{number}"\naddress = "10.60.0.{number + 1}"\n')
        parts.append(f'[[link]]\nname = "l{number}"\na = "hub"\nb = "s{number}"\n{features}\n')
    return "\n".join(parts)


def verify(neph: Path, links: list[str]) -> list[dict]:
    """The result of verify for each direction."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "matrix.toml"
        file.write_text(topology(links))
        command = [neph, "lab", "verify", file, "--format", "json"]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if not finished.stdout:
        raise RuntimeError(finished.stderr.strip())
    return json.loads(finished.stdout)


def percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def difference(row: dict, configured: str, measured: str) -> float:
    return row[measured] - row[configured]


def median_difference(row: dict) -> float:
    return difference(row, "delay_configured_ns", "delay_median_ns")


def p99_difference(row: dict) -> float:
    return difference(row, "delay_p99_configured_ns", "delay_p99_ns")


def rate_difference(row: dict) -> float | None:
    configured = row["rate_configured_bits_per_s"]
    return None if configured is None else row["rate_measured_bits_per_s"] / configured - 1


def markdown(rows: list[dict]) -> str:
    """One line for each direction."""
    heading = ["delay", "loss", "is", "rate", "is", "median off", "p99 off", "verdict"]
    lines = []
    for row in rows:
        configured, rate = row["rate_configured_bits_per_s"], rate_difference(row)
        lines.append([
            f"{row['delay_configured_ns'] / 1e6:.3f} ms",
            percent(row["loss_configured"]),
            percent(row["loss_measured"]),
            "-" if configured is None else f"{configured / 1e6:.0f} Mbit/s",
            "-" if rate is None else f"{100 * rate:+.2f} %",
            signed_micros(median_difference(row)),
            signed_micros(p99_difference(row)),
            "ok" if row["ok"] else "not as asked",
        ])
    return table(heading, lines)


def summary(rows: list[dict]) -> str:
    """How many directions keep each limit, and the largest difference of each."""
    medians = [abs(median_difference(row)) for row in rows]
    tails = [abs(p99_difference(row)) for row in rows]
    rates = [abs(rate) for row in rows if (rate := rate_difference(row)) is not None]
    worst_text = f"worst {signed_micros(max(medians))} and {signed_micros(max(tails))} us"
    return (
        f"{len(rows)} directions. Median within {MEDIAN_WITHIN / 1000:.0f} us: "
        f"{sum(value <= MEDIAN_WITHIN for value in medians)}; p99 within "
        f"{P99_WITHIN / 1000:.0f} us: {sum(value <= P99_WITHIN for value in tails)} ({worst_text}; "
        f"half of the medians within {signed_micros(quantile(medians, 0.5))} us). "
        f"Rate within 1 %: {sum(rate <= 0.01 for rate in rates)} of {len(rates)} "
        f"(worst {percent(max(rates))}; with loss a stream of some hundred frames tells it to 1.5 %). "
        f"As verify judges: {sum(row['ok'] for row in rows)} ok, loss within its 99 % interval "
        f"in all of these."
    )


def main() -> int:
    """All settings, four at a time."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", type=Path, required=True, help="the binary")
    parser.add_argument("--json", type=Path, help="write what verify said, unrounded")
    args = parser.parse_args()
    links = list(settings())
    environment = Environment.begin()
    rows: list[dict] = []
    for first in range(0, len(links), LINKS_IN_A_LAB):
        rows += verify(args.neph, links[first : first + LINKS_IN_A_LAB])
    environment_facts = environment.facts()
    print(markdown(rows))
    print(f"\n{summary(rows)}\n\nMicroseconds. {sentence(environment_facts)}")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "environment": environment_facts}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
