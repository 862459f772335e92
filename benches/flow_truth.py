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

from change_score import LEAST_ANSWERED, Margins, Score, Told, score
from environment import Environment, sentence
from figures import quantile, table
from lab import Line, document, lab, lines
from link_record import Truth, read
from processes import server

TOPOLOGIES = Path(__file__).resolve().parent.parent / "crates/neph-lab/topologies"
PORT, FIRST_PORT = 8080, 10_000
CAMPAIGN, TOLD = "truth", "told.json"
# Of each kind, more are not printed; --json has all.
SHOWN = 20
SAME_DATE_NS = 1_000_000
DETECTORS = ("guard", "rule", "change-points")
QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
# What neph writes for a quantile that falls on flows that lost half of their messages or more.
LOST = "lost"


@dataclass(frozen=True)
class Measured:
    """What neph told, and what the link wrote down."""

    told: list[Line]
    # By detector, from the messages that were kept.
    detected: dict[str, list[Told]]
    truth: Truth
    # Flow by flow, how many changes `neph lab truth --flows` counts on the way there.
    counted: dict[int, int]

    @property
    def summary(self) -> dict:
        """The last line."""
        return self.told[-1].document


def measure(asked: argparse.Namespace, topology: Path, folder: Path) -> None:
    """Brings the lab up, has 512 flows ask, takes it down; all that is needed is in the folder."""
    name = f"truth{os.getpid()}"
    addresses = [line for line in topology.read_text().splitlines() if line.startswith("address =")]
    address = addresses[1].split('"')[1].split("/")[0]
    with lab(asked.neph, topology, name, folder / "record") as up:
        reflect = [asked.neph, "reflect", "--listen", f"{address}:{PORT}", "--quiet"]
        with server(up.namespace("server"), [*reflect, "--max-rate", "200000"]):
            command = [asked.neph, "flows", f"udp://{address}:{PORT}"]
            command += ["--site", up.namespace("client"), "--flows", str(asked.flows)]
            command += ["--interval", f"{asked.interval_ms}ms", "--duration", f"{asked.seconds}s"]
            command += ["--first-port", str(FIRST_PORT), "--format", "ndjson"]
            command += ["--save", CAMPAIGN, "--workspace", str(folder / "workspace")]
            told = lines(command, asked.seconds)
    kept = [[line.written_ns, line.document] for line in told]
    (folder / TOLD).write_text(json.dumps(kept))


def read_back(asked: argparse.Namespace, folder: Path) -> Measured:
    """What `measure` left in a folder, and what each detector finds in it."""
    told = [Line(*line) for line in json.loads((folder / TOLD).read_text())]
    record = folder / "record" / "wan.truth"
    detected = {name: _detected(asked.neph, name, folder) for name in DETECTORS}
    return Measured(told, detected, read(record, PORT), _counted(asked.neph, record))


def _detected(neph: str, detector: str, folder: Path) -> list[Told]:
    """The changes that a detector finds in the kept messages."""
    command = [neph, "export", CAMPAIGN, "--changes", detector, "--format", "csv", "--output", "-"]
    command += ["--workspace", str(folder / "workspace")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = csv.DictReader(ran.stdout.splitlines())
    return [_told(row) for row in rows]


def _told(row: dict, written: int | None = None) -> Told:
    at = int(row["at_unix_ns"])
    # Change points are found after the fact: they have no moment of certainty.
    certain = int(row["detected_unix_ns"] or at)
    ends = int(row["before_ns"]), int(row["after_ns"])
    return Told(int(row["source_port"]), at, certain, *ends, written)


def _counted(neph: str, record: Path) -> dict[int, int]:
    command = [neph, "lab", "truth", str(record), "--flows", "--format", "json"]
    rows = document(command, 300)
    mine = (row for row in rows if row["protocol"] == 17 and row["destination_port"] == PORT)
    return {row["source_port"]: row["flow_changes"] for row in mine if row["direction"] == "a_to_b"}


def live(told: list[Line]) -> list[Told]:
    """The changes that stand in the summary, each with the moment at which its line was written."""
    lines_of: dict[int, list[Line]] = {}
    for line in told:
        if line.document["type"] == "change":
            lines_of.setdefault(line.document["source_port"], []).append(line)

    def written(row: dict) -> int | None:
        # The clocks are compared anew each second, so a date may differ by some nanoseconds.
        near = (
            line.written_ns
            for line in lines_of.get(row["source_port"], [])
            if abs(line.document["at_unix_ns"] - row["at_unix_ns"]) < SAME_DATE_NS
        )
        return next(near, None)

    return [_told(row, written(row)) for row in told[-1].document["changes"]]


def changes_table(scores: dict[str, Score]) -> str:
    """A line for each detector."""

    def delays(values: list[int]) -> str:
        if not values:
            return "-"
        told = [quantile(values, 0.5), quantile(values, 0.95), max(values)]
        return " / ".join(f"{value / 1e6:.0f}" for value in told)

    rows = [
        [
            *(name, str(s.due), str(s.told), str(s.told - s.right), str(s.due - s.found)),
            *(f"{100 * s.precision:.3f}", f"{100 * s.recall:.2f}"),
            *("-" if name == "change-points" else delays(s.delays), delays(s.written)),
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
        next((s.path for s in reversed(truth.segments(port)) if s.answered >= LEAST_ANSWERED), None)
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
class Off:
    """How far a told figure is from the record's, as a share of it: in the bin where it is most.

    Bins in which the figure is lost say nothing of it; where it is lost in all there is no share.
    """

    what: str
    bins: int
    lost: int
    middle: float | None
    most: float | None


def off(what: str, shares: list[float], lost: int) -> Off:
    """Of the bins that have the figure, and how many have none."""
    if not shares:
        return Off(what, 0, lost, None, None)
    return Off(what, len(shares), lost, statistics.median(shares), max(shares, key=abs))


def _median(trips: list[int | None]) -> float:
    """Of those that came back; a flow that lost half of them or more is slower than all others."""
    back = [trip for trip in trips if trip is not None]
    return statistics.median(back) if 2 * len(back) > len(trips) else math.inf


def unfairness(truth: Truth, pair: dict) -> list[Off]:
    """Quantiles over flows of each flow's median round trip, bin by bin, calculated anew."""
    width = pair["bin_ns"]
    begins = [found["from_unix_ns"] for found in pair["bins"]]
    trips: list[dict[int, list[int | None]]] = [{} for _ in begins]
    for port, samples in truth.samples.items():
        for sample in samples:
            number = (sample.sent - begins[0]) // width
            if 0 <= number < len(begins):
                trips[number].setdefault(port, []).append(sample.trip)
    offs: dict[str, list[float]] = {name: [] for name, _ in QUANTILES}
    lost = Counter()
    for found, by_port in zip(pair["bins"], trips, strict=True):
        medians = [_median(each) for each in by_port.values()]
        for name, p in QUANTILES:
            told = found["latency"][f"{name}_ns"]
            if told == LOST or not medians:
                lost[name] += 1
            else:
                offs[name].append(told / quantile(medians, p) - 1)
    return [off(f"{name} over flows", each, lost[name]) for name, each in offs.items()]


def inflation(truth: Truth, pair: dict) -> Off:
    """The highest level over the lowest."""
    levels = truth.levels().values()
    share = pair["inflation"]["ratio"] / (max(levels) / min(levels)) - 1
    return off("inflation", [share], 0)


def offs_table(offs: list[Off]) -> str:
    """Shares as percent."""

    def percent(share: float | None) -> str:
        return "-" if share is None else f"{100 * share:+.3f}"

    rows = [
        [each.what, str(each.bins), str(each.lost), percent(each.middle), percent(each.most)]
        for each in offs
    ]
    return table(["figure", "bins of 20 s", "lost in", "off %, median", "off %, most"], rows)


def listed(what: str, reasons: list[str]) -> None:
    """Every one with what can be told of it."""
    for reason in reasons[:SHOWN]:
        print(f"- {what}: {reason}")
    if len(reasons) > SHOWN:
        print(f"- {what}: and {len(reasons) - SHOWN} more (--json)")


def tell(asked: argparse.Namespace, measured: Measured, margins: Margins) -> dict:
    """Prints the tables; the same for a file."""
    summary, truth = measured.summary, measured.truth
    pair = summary["pairs"][0]
    scores = {"neph flows": score(truth, live(measured.told), margins)}
    scores |= {name: score(truth, told, margins) for name, told in measured.detected.items()}
    sent = sum(len(samples) for samples in truth.samples.values())
    queued = sum(end - begin for begin, end in truth.queues) / 1e9
    print(f"{asked.topology}: {len(truth.samples)} flows, {sent} messages on record; ")
    print(f"{json.dumps(summary['tally'])} {json.dumps(summary['sender'])}; ")
    print(f"packets stood in a queue, or the machine was late, for {queued:.1f} s of {asked.seconds}.")
    print(
        f"Right: within {margins.time_ns / 1e9} s and {margins.level_ns / 1e6} ms; "
        f"true: more than 0.5 ms, four answers or more before and after.\n"
    )
    print(changes_table(scores))
    print("\n" + classes_table(truth, pair["classes"]))
    offs = [inflation(truth, pair), *unfairness(truth, pair)]
    print("\n" + offs_table(offs) + "\n")
    own = {port: len(truth.segments(port)) - 1 for port in truth.samples}
    agree = "agrees" if own == measured.counted else "DISAGREES"
    print(f"`neph lab truth --flows` {agree} with the record on each flow's changes.")
    listed("false", scores["neph flows"].false)
    listed("missed", scores["neph flows"].missed)
    return {
        "offs": [vars(off) for off in offs],
        "scores": {name: vars(found) for name, found in scores.items()},
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
    asked = parser.parse_args()
    asked.neph = str(Path(asked.neph).resolve())
    topology = Path(asked.topology)
    if not topology.exists():
        topology = TOPOLOGIES / f"{asked.topology}.toml"
    jitter = "jitter" in topology.read_text()
    level = asked.level_margin_us or (1000 if jitter else 500)
    late = asked.time_margin_ms or (5000 if jitter else 1000)
    margins = Margins(late * 1_000_000, level * 1000)
    environment = Environment.begin()
    with tempfile.TemporaryDirectory() as name:
        folder = asked.kept or asked.keep or Path(name)
        folder.mkdir(exist_ok=True)
        surroundings = folder / "environment.json"
        if not asked.kept:
            measure(asked, topology, folder)
            surroundings.write_text(json.dumps(environment.tell()))
        told = json.loads(surroundings.read_text())
        print("measured; reading", file=sys.stderr)
        found = tell(asked, read_back(asked, folder), margins)
    print(f"\n{sentence(told)}")
    if asked.json:
        asked.json.write_text(json.dumps({"environment": told, **found}, indent=1))


if __name__ == "__main__":
    main()
