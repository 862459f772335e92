#!/usr/bin/env python3
"""neph flows over a link of the lab, held against what the link wrote down.

    python3 benches/flow_truth.py --neph target/release/neph [--topology flows-noisy] [--seconds 300]

Needs root. See README.md for what is measured and how.
"""

import argparse
import csv
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from change_score import MIN_ANSWERED, Margins, Score, DetectedChange, score
from environment import Environment, sentence
from figures import quantile, table
from lab import Line, run_json, lab, run_json_lines
from link_record import Truth, read_truth
from processes import server

TOPOLOGIES = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies"
PORT, FIRST_PORT = 8080, 10_000
CAMPAIGN, OUTPUT_FILE = "truth", "told.json"
# The maximum number of false and of missed changes that are printed; --json has all.
MAX_PRINTED = 20
SAME_DATE_NS = 1_000_000
DETECTORS = ("guard", "rule", "change-points")
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
# What neph writes for a quantile that falls on flows that lost half of their messages or more.
LOST = "lost"


@dataclass(frozen=True)
class Measured:
    """The output of neph, and the record of the link."""

    output_lines: list[Line]
    # By detector, from the messages that were kept.
    detected: dict[str, list[DetectedChange]]
    truth: Truth
    # Flow by flow, how many changes `neph lab truth --flows` counts on the way there.
    change_counts: dict[int, int]

    @property
    def summary(self) -> dict:
        """The last line."""
        return self.output_lines[-1].document


def measure(args: argparse.Namespace, topology: Path, folder: Path) -> None:
    """Measures the flows in a lab; writes all results into the folder."""
    name = f"truth{os.getpid()}"
    addresses = [line for line in topology.read_text().splitlines() if line.startswith("address =")]
    address = addresses[1].split('"')[1].split("/")[0]
    with lab(args.neph, topology, name, folder / "record") as lab_up:
        reflect_command = [args.neph, "reflect", "--listen", f"{address}:{PORT}", "--quiet"]
        with server(lab_up.namespace("server"), [*reflect_command, "--max-rate", "200000"]):
            command = [args.neph, "flows", f"udp://{address}:{PORT}"]
            command += ["--site", lab_up.namespace("client"), "--flows", str(args.flows)]
            command += ["--interval", f"{args.interval_ms}ms", "--duration", f"{args.seconds}s"]
            command += ["--first-port", str(FIRST_PORT), "--format", "ndjson"]
            command += ["--save", CAMPAIGN, "--workspace", str(folder / "workspace")]
            output_lines = run_json_lines(command, args.seconds)
    records = [[line.written_ns, line.document] for line in output_lines]
    (folder / OUTPUT_FILE).write_text(json.dumps(records))


def read_back(args: argparse.Namespace, folder: Path) -> Measured:
    """What `measure` left in a folder, and what each detector finds in it."""
    output_lines = [Line(*line) for line in json.loads((folder / OUTPUT_FILE).read_text())]
    record = folder / "record" / "wan.truth"
    detected = {name: _detected(args.neph, name, folder) for name in DETECTORS}
    return Measured(output_lines, detected, read_truth(record, PORT), _change_counts(args.neph, record))


def _detected(neph: str, detector: str, folder: Path) -> list[DetectedChange]:
    """The changes that a detector finds in the kept messages."""
    command = [neph, "export", CAMPAIGN, "--changes", detector, "--format", "csv", "--output", "-"]
    command += ["--workspace", str(folder / "workspace")]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = csv.DictReader(finished.stdout.splitlines())
    return [_detected_change(row) for row in rows]


def _detected_change(row: dict, written_at: int | None = None) -> DetectedChange:
    changed_at = int(row["at_unix_ns"])
    # Change points are found after the fact: they have no moment of certainty.
    confirmed_at = int(row["detected_unix_ns"] or changed_at)
    levels = int(row["before_ns"]), int(row["after_ns"])
    return DetectedChange(int(row["source_port"]), changed_at, confirmed_at, *levels, written_at)


def _change_counts(neph: str, record: Path) -> dict[int, int]:
    command = [neph, "lab", "truth", str(record), "--flows", "--format", "json"]
    rows = run_json(command, 300)
    udp_rows = (row for row in rows if row["protocol"] == 17 and row["destination_port"] == PORT)
    return {row["source_port"]: row["flow_changes"] for row in udp_rows if row["direction"] == "a_to_b"}


def live_changes(output_lines: list[Line]) -> list[DetectedChange]:
    """The changes that stand in the summary, each with the moment at which its line was written."""
    lines_of: dict[int, list[Line]] = {}
    for line in output_lines:
        if line.document["type"] == "change":
            lines_of.setdefault(line.document["source_port"], []).append(line)

    def written_at(row: dict) -> int | None:
        # The clocks are compared anew each second, so a date may differ by some nanoseconds.
        candidates = (
            line.written_ns
            for line in lines_of.get(row["source_port"], [])
            if abs(line.document["at_unix_ns"] - row["at_unix_ns"]) < SAME_DATE_NS
        )
        return next(candidates, None)

    return [_detected_change(row, written_at(row)) for row in output_lines[-1].document["changes"]]


def changes_table(scores: dict[str, Score]) -> str:
    """A line for each detector."""

    def delays(values: list[int]) -> str:
        if not values:
            return "-"
        quantiles = [quantile(values, 0.5), quantile(values, 0.95), max(values)]
        return " / ".join(f"{value / 1e6:.0f}" for value in quantiles)

    rows = [
        [
            *(name, str(s.expected), str(s.reported), str(s.reported - s.correct), str(s.expected - s.detected)),
            *(f"{100 * s.precision:.3f}", f"{100 * s.recall:.2f}"),
            *("-" if name == "change-points" else delays(s.confirmation_delays), delays(s.write_delays)),
            str(s.misdated),
        ]
        for name, s in scores.items()
    ]
    heading = ["detector", "true", "told", "false", "missed", "precision %", "recall %"]
    heading += ["certain after ms, p50/p95/most", "written after ms", "date over 1 s off"]
    return table(heading, rows)


def classes_table(truth: Truth, classes: list[dict]) -> str:
    """Paths by the record, lowest first, and classes as told."""
    levels = sorted(truth.levels().items(), key=lambda item: item[1])
    packets = Counter(s.path for samples in truth.samples.values() for s in samples)
    at_end = Counter(
        next((s.path for s in reversed(truth.segments(port)) if s.answered >= MIN_ANSWERED), None)
        for port in truth.samples
    )
    rows = []
    for number in range(max(len(levels), len(classes))):
        row = ["-"] * 7
        if number < len(levels):
            path, level = levels[number]
            share = 100 * packets[path] / packets.total()
            row[:4] = [str(path), f"{level / 1e6:.3f}", f"{share:.2f}", str(at_end[path])]
        if number < len(classes):
            found = classes[number]
            base, share = found["base_ns"] / 1e6, 100 * found["share_of_time"]
            row[4:] = [f"{base:.3f}", f"{share:.2f}", str(found["flows"])]
        rows.append(row)
    heading = ["path", "round trip ms", "share %", "flows at the end"]
    return table([*heading, "told: base ms", "share %", "flows at the end"], rows)


@dataclass(frozen=True)
class Deviation:
    """Difference of a reported figure from the record, as a share of the record: median and largest bin.

    Bins in which the figure is lost have no share.
    """

    figure: str
    bins: int
    lost_bins: int
    median: float | None
    largest: float | None

    def as_json(self) -> dict:
        """The fields by the keys of the JSON file."""
        return {
            **{"what": self.figure, "bins": self.bins, "lost": self.lost_bins},
            **{"middle": self.median, "most": self.largest},
        }


def deviation(figure: str, shares: list[float], lost_bins: int) -> Deviation:
    """Summarises the shares of the bins that have the figure."""
    if not shares:
        return Deviation(figure, 0, lost_bins, None, None)
    return Deviation(figure, len(shares), lost_bins, statistics.median(shares), max(shares, key=abs))


def _median(round_trips: list[int | None]) -> float:
    """The median of the answered messages; a flow that lost half or more is slower than all others."""
    answered = [trip for trip in round_trips if trip is not None]
    return statistics.median(answered) if 2 * len(answered) > len(round_trips) else math.inf


def unfairness(truth: Truth, pair: dict) -> list[Deviation]:
    """Quantiles over flows of each flow's median round trip, bin by bin, calculated anew."""
    width = pair["bin_ns"]
    begins = [time_bin["from_unix_ns"] for time_bin in pair["bins"]]
    round_trips: list[dict[int, list[int | None]]] = [{} for _ in begins]
    for port, samples in truth.samples.items():
        for sample in samples:
            number = (sample.sent - begins[0]) // width
            if 0 <= number < len(begins):
                round_trips[number].setdefault(port, []).append(sample.round_trip)
    deviations: dict[str, list[float]] = {name: [] for name, _ in QUANTILES}
    lost_bins = Counter()
    for time_bin, by_port in zip(pair["bins"], round_trips, strict=True):
        medians = [_median(flow_trips) for flow_trips in by_port.values()]
        for name, p in QUANTILES:
            reported = time_bin["latency"][f"{name}_ns"]
            if reported == LOST or not medians:
                lost_bins[name] += 1
            else:
                deviations[name].append(reported / quantile(medians, p) - 1)
    return [deviation(f"{name} over flows", values, lost_bins[name]) for name, values in deviations.items()]


def inflation(truth: Truth, pair: dict) -> Deviation:
    """The highest level over the lowest."""
    levels = truth.levels().values()
    share = pair["inflation"]["ratio"] / (max(levels) / min(levels)) - 1
    return deviation("inflation", [share], 0)


def deviations_table(deviations: list[Deviation]) -> str:
    """Shares as percent."""

    def percent(share: float | None) -> str:
        return "-" if share is None else f"{100 * share:+.3f}"

    rows = [
        [each.figure, str(each.bins), str(each.lost_bins), percent(each.median), percent(each.largest)]
        for each in deviations
    ]
    return table(["figure", "bins of 20 s", "lost in", "off %, median", "off %, most"], rows)


def print_reasons(kind: str, reasons: list[str]) -> None:
    """Prints each false or missed change with its reason."""
    for reason in reasons[:MAX_PRINTED]:
        print(f"- {kind}: {reason}")
    if len(reasons) > MAX_PRINTED:
        print(f"- {kind}: and {len(reasons) - MAX_PRINTED} more (--json)")


def print_tables(args: argparse.Namespace, measured: Measured, margins: Margins) -> dict:
    """Prints the tables; returns the same figures for a file."""
    summary, truth = measured.summary, measured.truth
    pair = summary["pairs"][0]
    scores = {"neph flows": score(truth, live_changes(measured.output_lines), margins)}
    scores |= {name: score(truth, changes, margins) for name, changes in measured.detected.items()}
    sent = sum(len(samples) for samples in truth.samples.values())
    queued = sum(end - begin for begin, end in truth.queues) / 1e9
    print(f"{args.topology}: {len(truth.samples)} flows, {sent} messages on record; ")
    print(f"{json.dumps(summary['tally'])} {json.dumps(summary['sender'])}; ")
    print(f"packets stood in a queue, or the machine was late, for {queued:.1f} s of {args.seconds}.")
    print(
        f"Right: within {margins.time_ns / 1e9} s and {margins.level_ns / 1e6} ms; "
        f"true: more than 0.5 ms, four answers or more before and after.\n"
    )
    print(changes_table(scores))
    print("\n" + classes_table(truth, pair["classes"]))
    deviations = [inflation(truth, pair), *unfairness(truth, pair)]
    print("\n" + deviations_table(deviations) + "\n")
    record_counts = {port: len(truth.segments(port)) - 1 for port in truth.samples}
    agreement = "agrees" if record_counts == measured.change_counts else "DISAGREES"
    print(f"`neph lab truth --flows` {agreement} with the record on each flow's changes.")
    print_reasons("false", scores["neph flows"].false_reports)
    print_reasons("missed", scores["neph flows"].missed)
    return {
        "offs": [each.as_json() for each in deviations],
        "scores": {name: result.as_json() for name, result in scores.items()},
        "classes": pair["classes"],
        "levels": truth.levels(),
    }


def main() -> None:
    """Reads the arguments, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--topology", default="flows-4-paths", help="a name, or a file")
    parser.add_argument("--flows", type=int, default=512)
    parser.add_argument("--interval-ms", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--time-margin-ms", type=int, help="1000; 5000 where there is jitter")
    parser.add_argument("--level-margin-us", type=int, help="500; 1000 where there is jitter")
    parser.add_argument("--keep", type=Path, help="keep record and workspace in this new folder")
    parser.add_argument("--kept", type=Path, help="measure nothing; score what --keep kept there")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.neph = str(Path(args.neph).resolve())
    topology = Path(args.topology)
    if not topology.exists():
        topology = TOPOLOGIES / f"{args.topology}.toml"
    jitter = "jitter" in topology.read_text()
    level_margin_us = args.level_margin_us or (1000 if jitter else 500)
    time_margin_ms = args.time_margin_ms or (5000 if jitter else 1000)
    margins = Margins(time_margin_ms * 1_000_000, level_margin_us * 1000)
    environment = Environment.begin()
    with tempfile.TemporaryDirectory() as name:
        folder = args.kept or args.keep or Path(name)
        folder.mkdir(exist_ok=True)
        surroundings = folder / "environment.json"
        if not args.kept:
            measure(args, topology, folder)
            surroundings.write_text(json.dumps(environment.facts()))
        environment_facts = json.loads(surroundings.read_text())
        print("measured; reading", file=sys.stderr)
        tables = print_tables(args, read_back(args, folder), margins)
    print(f"\n{sentence(environment_facts)}")
    if args.json:
        args.json.write_text(json.dumps({"environment": environment_facts, **tables}, indent=1))


if __name__ == "__main__":
    main()
