"""The tools whose round trips are held against the truth: how each is called and read.

One class a tool, one line in `ASKERS` each. None of them is given an advantage: each sends 64
bytes where it can be told to, one message at a time, at the same interval where it can be paced.
"""

import csv
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from namespaces import SERVER_ADDRESS
from reported import Matching, Series, Told

NEPH_PORT = 8080
SOCKPERF_PORT = 11111


@dataclass(frozen=True)
class Task:
    """What a tool is asked for in one run."""

    count: int
    interval_ms: int
    # For whatever it writes.
    folder: Path

    @property
    def per_second(self) -> int:
        """Messages a second."""
        return 1000 // self.interval_ms


class Asker(Protocol):
    """A tool that measures round trips."""

    # As the table calls it.
    name: str
    # Its counterpart of neph's, which the table's ratio is against.
    peer: str
    # The program that must be installed.
    program: str

    def command(self, task: Task) -> list[str]:
        """How to have about `task.count` messages exchanged."""

    def read(self, output: str, folder: Path) -> list[Series]:
        """What it told."""


@dataclass(frozen=True)
class Neph:
    """`neph ping`, one kind of probe."""

    program: str
    scheme: str
    new_connection: bool = False

    @property
    def name(self) -> str:
        """neph and the kind of probe."""
        return f"neph {self.scheme}" + (" --new-connection" if self.new_connection else "")

    @property
    def peer(self) -> str:
        """Itself."""
        return self.name

    def command(self, task: Task) -> list[str]:
        """Messages are written to a file, so that no terminal is waited for."""
        port = "" if self.scheme == "icmp" else f":{NEPH_PORT}"
        options = ["--insecure"] if self.scheme in ("wss", "https") else []
        options += ["--new-connection"] if self.new_connection else []
        return [
            *(self.program, "ping", f"{self.scheme}://{SERVER_ADDRESS}{port}", "--no-icmp"),
            *("--interval", f"{task.interval_ms}ms", "--count", str(task.count)),
            *("--format", "ndjson", "--output", str(task.folder / "messages"), "--force", *options),
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """The program's own round trip, and the one between its kernel stamps."""
        service: list[Told] = []
        network: list[Told] = []
        for line in (folder / "messages").read_text().splitlines():
            message = json.loads(line)
            if message["type"] != "message" or message["outcome"] != "reply":
                continue
            marks = message["timestamps"]
            begun = marks["app_send_ns"]
            if self.new_connection:
                begun = marks["dialled_ns"]
            if "intended_unix_ns" not in message:
                continue
            wall = message["intended_unix_ns"] + begun - marks["intended_ns"]
            service.append(Told(marks["app_recv_ns"] - begun, wall))
            if marks["nic_rx_ns"] is not None and marks["nic_tx_ns"] is not None:
                sent = wall + marks["app_send_ns"] - begun
                network.append(Told(marks["nic_rx_ns"] - marks["nic_tx_ns"], sent))
        by = Matching.BY_WALL_CLOCK
        return [
            Series("kernel stamps", by, network),
            Series("application", by, service, new_connection=self.new_connection),
        ]


class Ping:
    """iputils ping."""

    name = "ping"
    peer = "neph icmp"
    program = "ping"

    def command(self, task: Task) -> list[str]:
        """As root it may be as quick as this."""
        interval = str(task.interval_ms / 1000)
        return ["ping", "-n", "-c", str(task.count), "-i", interval, SERVER_ADDRESS]

    def read(self, output: str, folder: Path) -> list[Series]:
        """It tells each message to the microsecond."""
        times = re.findall(r"icmp_seq=\d+ .*time=([0-9.]+) ms", output)
        told = [Told(float(milliseconds) * 1e6) for milliseconds in times]
        return [Series("application", Matching.BY_ORDER, told)]


@dataclass(frozen=True)
class Sockperf:
    """sockperf ping-pong; its log has each message but those of its first and last moments."""

    name: str
    peer: str
    options: tuple[str, ...] = ()
    program: str = "sockperf"

    def command(self, task: Task) -> list[str]:
        """It takes whole seconds."""
        seconds = max(round(task.count / task.per_second), 1) + 1
        return [
            *("sockperf", "ping-pong", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT)),
            *("-t", str(seconds), "--mps", str(task.per_second), "-m", "64"),
            *(f"--full-log={task.folder / 'log'}", *self.options),
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Rows of: number, sent at (s), received at (s), half the round trip (us)."""
        told = []
        for line in (folder / "log").read_text().splitlines():
            cells = line.split(",")
            if len(cells) == 4 and cells[0].isdigit():
                sent, received = (round(float(cell) * 1e9) for cell in cells[1:3])
                told.append(Told(received - sent, sent))
        return [Series("application", Matching.BY_GAPS, told)]


class Irtt:
    """irtt client."""

    name = "irtt"
    peer = "neph udp"
    program = "irtt"

    def command(self, task: Task) -> list[str]:
        """Its JSON tells each message."""
        return [
            *("irtt", "client", "-Q", "-i", f"{task.interval_ms}ms", "-l", "64", "--wait=200ms"),
            *("-d", f"{task.count * task.interval_ms}ms"),
            *("-o", str(task.folder / "irtt.json"), SERVER_ADDRESS),
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Only messages that were answered."""
        told = []
        for trip in json.loads((folder / "irtt.json").read_text())["round_trips"]:
            if trip["lost"] == "false":
                sent = trip["timestamps"]["client"]["send"]["wall"]
                told.append(Told(trip["delay"]["rtt"], sent))
        return [Series("application", Matching.BY_WALL_CLOCK, told)]


class Ab:
    """ApacheBench: a connection per request, one after the other without pause."""

    name = "ab (new connection)"
    peer = "neph http --new-connection"
    program = "ab"

    def command(self, task: Task) -> list[str]:
        """It cannot be paced."""
        url = f"http://{SERVER_ADDRESS}:{NEPH_PORT}/"
        csv_file = str(task.folder / "csv")
        return ["ab", "-q", "-n", str(task.count), "-c", "1", "-e", csv_file, url]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Rows of: percentage served, milliseconds with three digits."""
        quantiles = {}
        for line in (folder / "csv").read_text().splitlines()[1:]:
            percent, milliseconds = line.split(",")
            quantiles[round(float(percent) / 100, 4)] = float(milliseconds) * 1e6
        by = Matching.QUANTILES
        return [Series("application", by, quantiles=quantiles, new_connection=True)]


class Wrk:
    """wrk: one connection, requests without pause."""

    name = "wrk"
    peer = "neph http"
    program = "wrk"

    def command(self, task: Task) -> list[str]:
        """It takes whole seconds, and cannot be paced."""
        url = f"http://{SERVER_ADDRESS}:{NEPH_PORT}/"
        return ["wrk", "-t", "1", "-c", "1", "-d", "1s", "--latency", url]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Four quantiles with two digits after the point."""
        unit = {"us": 1e3, "ms": 1e6, "s": 1e9}
        quantiles = {}
        for percent, value, suffix in re.findall(r"(\d+)%\s+([0-9.]+)(us|ms|s)\s", output):
            quantiles[int(percent) / 100] = float(value) * unit[suffix]
        return [Series("application", Matching.QUANTILES, quantiles=quantiles)]


@dataclass(frozen=True)
class Oha:
    """oha: paced, its CSV has each request."""

    name: str
    peer: str
    program: str
    new_connection: bool

    def command(self, task: Task) -> list[str]:
        """One connection at a time."""
        options = ["--disable-keepalive"] if self.new_connection else []
        return [
            *(self.program, "-n", str(task.count), "-c", "1", "-q", str(task.per_second)),
            *("--no-tui", "--output-format", "csv", *options),
            f"http://{SERVER_ADDRESS}:{NEPH_PORT}/",
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Seconds; the rows come in order of ending."""
        told = []
        for row in csv.DictReader(io.StringIO(output)):
            begun = round(float(row["request-start"]) * 1e9)
            told.append(Told(float(row["request-duration"]) * 1e9, begun))
        by = Matching.BY_GAPS
        return [Series("application", by, told, new_connection=self.new_connection)]


def askers(neph: str, oha: str) -> list[Asker]:
    """All of them."""
    kinds = ("udp", "tcp", "icmp", "ws", "wss", "http")
    return [
        *(Neph(neph, kind) for kind in kinds),
        Neph(neph, "http", new_connection=True),
        Ping(),
        Sockperf("sockperf udp", "neph udp"),
        Sockperf("sockperf tcp", "neph tcp", ("--tcp",)),
        Irtt(),
        Ab(),
        Wrk(),
        Oha("oha", "neph http", oha, new_connection=False),
        Oha("oha (new connection)", "neph http --new-connection", oha, new_connection=True),
    ]
