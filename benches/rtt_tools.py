"""The tools whose round trips are compared with captures: the command of each, and how to read its output.

One class for each tool, listed in `rtt_tools`. No tool gets an advantage: each sends 64 bytes if its size
can be set, one message at a time, at the same interval if it can be paced.
"""

import csv
import io
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from namespaces import SERVER_ADDRESS
from matching import Matching, Series, ReportedMessage

NEPH_PORT = 8080
SOCKPERF_PORT = 11111


@dataclass(frozen=True)
class Task:
    """What a tool measures in one run."""

    count: int
    interval_ms: int
    # For its output files.
    folder: Path

    @property
    def messages_per_second(self) -> int:
        """Messages a second."""
        return 1000 // self.interval_ms


class RttTool(Protocol):
    """A tool that measures round trips."""

    # Its name in the table.
    name: str
    # The measurement of neph that the table compares it with.
    neph_counterpart: str
    # The program that must be installed.
    program: str

    def command(self, task: Task) -> list[str]:
        """The command that exchanges about `task.count` messages."""

    def read(self, output: str, folder: Path) -> list[Series]:
        """The round trips that it reported."""


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
    def neph_counterpart(self) -> str:
        """Itself."""
        return self.name

    def command(self, task: Task) -> list[str]:
        """Messages go to a file, so that neph does not wait for a terminal."""
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
        service: list[ReportedMessage] = []
        network: list[ReportedMessage] = []
        for line in (folder / "messages").read_text().splitlines():
            message = json.loads(line)
            if message["type"] != "message" or message["outcome"] != "reply":
                continue
            timestamps = message["timestamps"]
            start_ns = timestamps["app_send_ns"]
            if self.new_connection:
                start_ns = timestamps["dialled_ns"]
            if "intended_unix_ns" not in message:
                continue
            start_wall_ns = message["intended_unix_ns"] + start_ns - timestamps["intended_ns"]
            service.append(ReportedMessage(timestamps["app_recv_ns"] - start_ns, start_wall_ns))
            if timestamps["nic_rx_ns"] is not None and timestamps["nic_tx_ns"] is not None:
                sent = start_wall_ns + timestamps["app_send_ns"] - start_ns
                network.append(ReportedMessage(timestamps["nic_rx_ns"] - timestamps["nic_tx_ns"], sent))
        matching = Matching.BY_WALL_CLOCK
        return [
            Series("kernel stamps", matching, network),
            Series("application", matching, service, new_connection=self.new_connection),
        ]


class Ping:
    """iputils ping."""

    name = "ping"
    neph_counterpart = "neph icmp"
    program = "ping"

    def command(self, task: Task) -> list[str]:
        """As root it may be as quick as this."""
        interval = str(task.interval_ms / 1000)
        return ["ping", "-n", "-c", str(task.count), "-i", interval, SERVER_ADDRESS]

    def read(self, output: str, folder: Path) -> list[Series]:
        """It reports each message to the microsecond."""
        times = re.findall(r"icmp_seq=\d+ .*time=([0-9.]+) ms", output)
        messages = [ReportedMessage(float(milliseconds) * 1e6) for milliseconds in times]
        return [Series("application", Matching.BY_ORDER, messages)]


@dataclass(frozen=True)
class Sockperf:
    """sockperf ping-pong; its log has each message but those of its first and last moments."""

    name: str
    neph_counterpart: str
    options: tuple[str, ...] = ()
    program: str = "sockperf"

    def command(self, task: Task) -> list[str]:
        """It takes whole seconds."""
        seconds = max(round(task.count / task.messages_per_second), 1) + 1
        return [
            *("sockperf", "ping-pong", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT)),
            *("-t", str(seconds), "--mps", str(task.messages_per_second), "-m", "64"),
            *(f"--full-log={task.folder / 'log'}", *self.options),
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Rows of: number, sent at (s), received at (s), half the round trip (us)."""
        messages = []
        for line in (folder / "log").read_text().splitlines():
            cells = line.split(",")
            if len(cells) == 4 and cells[0].isdigit():
                sent, received = (round(float(cell) * 1e9) for cell in cells[1:3])
                messages.append(ReportedMessage(received - sent, sent))
        return [Series("application", Matching.BY_GAPS, messages)]


class Irtt:
    """irtt client."""

    name = "irtt"
    neph_counterpart = "neph udp"
    program = "irtt"

    def command(self, task: Task) -> list[str]:
        """Its JSON has each message."""
        return [
            *("irtt", "client", "-Q", "-i", f"{task.interval_ms}ms", "-l", "64", "--wait=200ms"),
            *("-d", f"{task.count * task.interval_ms}ms"),
            *("-o", str(task.folder / "irtt.json"), SERVER_ADDRESS),
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Only messages that were answered."""
        messages = []
        for trip in json.loads((folder / "irtt.json").read_text())["round_trips"]:
            if trip["lost"] == "false":
                sent = trip["timestamps"]["client"]["send"]["wall"]
                messages.append(ReportedMessage(trip["delay"]["rtt"], sent))
        return [Series("application", Matching.BY_WALL_CLOCK, messages)]


class Ab:
    """ApacheBench: a connection per request, one after the other without pause."""

    name = "ab (new connection)"
    neph_counterpart = "neph http --new-connection"
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
        matching = Matching.QUANTILES
        return [Series("application", matching, quantiles=quantiles, new_connection=True)]


class Wrk:
    """wrk: one connection, requests without pause."""

    name = "wrk"
    neph_counterpart = "neph http"
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
    neph_counterpart: str
    program: str
    new_connection: bool

    def command(self, task: Task) -> list[str]:
        """One connection at a time."""
        options = ["--disable-keepalive"] if self.new_connection else []
        return [
            *(self.program, "-n", str(task.count), "-c", "1", "-q", str(task.messages_per_second)),
            *("--no-tui", "--output-format", "csv", *options),
            f"http://{SERVER_ADDRESS}:{NEPH_PORT}/",
        ]

    def read(self, output: str, folder: Path) -> list[Series]:
        """Seconds; the rows come in order of ending."""
        messages = []
        for row in csv.DictReader(io.StringIO(output)):
            start_ns = round(float(row["request-start"]) * 1e9)
            messages.append(ReportedMessage(float(row["request-duration"]) * 1e9, start_ns))
        matching = Matching.BY_GAPS
        return [Series("application", matching, messages, new_connection=self.new_connection)]


def rtt_tools(neph: str, oha: str) -> list[RttTool]:
    """All tools."""
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
