"""The tools whose send times are held against a grid: how each is called."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from namespaces import SERVER_ADDRESS

NEPH_PORT = 8080
SOCKPERF_PORT = 11111
IRTT_PORT = 2112
# Nobody reads it: a socket that swallows what senders without a server of their own send.
SINK_PORT = 9999
# neph's own real-time priority, for a loop on equal terms.
PRIORITY = 10


class Sender(Protocol):
    """A tool that sends on a schedule."""

    # Its name in the table.
    name: str
    # The program that must be installed.
    program: str
    # Where it sends to.
    port: int
    # Whether it runs until it is stopped.
    runs_until_stopped: bool

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """The command that sends `rate` datagrams of 64 bytes a second."""


@dataclass(frozen=True)
class Neph:
    """`neph ping udp://`; the lateness that it reports goes to the folder."""

    program: str
    spin: str
    port: int = NEPH_PORT
    runs_until_stopped: bool = False

    @property
    def name(self) -> str:
        """With its spin."""
        return f"neph --spin {self.spin}"

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """Messages as CSV, to a file: the cheapest form that tells each one's lateness."""
        return [
            *(self.program, "ping", f"udp://{SERVER_ADDRESS}:{NEPH_PORT}", "--no-icmp"),
            *("--interval", f"{1_000_000 // rate}us", "--count", str(rate * seconds)),
            *("--spin", self.spin, "--format", "csv", "--output", str(folder / "messages"), "--force"),
        ]


def reported_lateness(folder: Path) -> list[int]:
    """neph's own lateness of each message, ns: app_send minus intended."""
    heading, *lines = (folder / "messages").read_text().splitlines()
    names = heading.split(",")
    intended, sent = names.index("intended_ns"), names.index("app_send_ns")
    rows = (line.split(",") for line in lines)
    return [int(row[sent]) - int(row[intended]) for row in rows if len(row) == len(names)]


class Mgen:
    """mgen, with its precise timing on."""

    name = "mgen (precise)"
    program = "mgen"
    port = SINK_PORT
    runs_until_stopped = True

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """It goes on until it is stopped."""
        pattern = f"PERIODIC [{rate} 64]"
        event = f"0.0 ON 1 UDP DST {SERVER_ADDRESS}/{SINK_PORT} {pattern}"
        return ["mgen", "ipv4", "precise", "on", "nolog", "event", event]


class Sockperf:
    """sockperf under-load."""

    name = "sockperf under-load"
    program = "sockperf"
    port = SOCKPERF_PORT
    runs_until_stopped = False

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """A reply to every hundredth, as is its default."""
        return [
            *("sockperf", "under-load", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT)),
            *("-t", str(seconds), "--mps", str(rate), "-m", "64"),
        ]


class Irtt:
    """irtt client, with its default timer."""

    name = "irtt"
    program = "irtt"
    port = IRTT_PORT
    runs_until_stopped = False

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """It prints nothing."""
        return [
            *("irtt", "client", "-Q", "-i", f"{1_000_000 // rate}us", "-d", f"{seconds}s"),
            *("-l", "64", "--wait=200ms", SERVER_ADDRESS),
        ]


@dataclass(frozen=True)
class SpinLoop:
    """The plain C loop of spin_loop.c."""

    program: str
    priority: int
    port: int = SINK_PORT
    runs_until_stopped: bool = False

    @property
    def name(self) -> str:
        """With its scheduling."""
        return "C loop, real-time" if self.priority else "C loop"

    def command(self, rate: int, seconds: int, folder: Path) -> list[str]:
        """One datagram an interval."""
        interval, count = str(1_000_000_000 // rate), str(rate * seconds)
        arguments = (SERVER_ADDRESS, str(SINK_PORT), interval, count, str(self.priority))
        return [self.program, *arguments]


def compile_spin_loop(folder: Path) -> str:
    """Compiles spin_loop.c; returns the program's path."""
    source, program = Path(__file__).with_name("spin_loop.c"), folder / "spin_loop"
    subprocess.run(("cc", "-O2", "-o", str(program), str(source)), check=True)
    return str(program)


def senders(neph: str, spin_loop: str) -> list[Sender]:
    """All senders that are installed."""
    all_senders: list[Sender] = [
        *(Neph(neph, "60us"), Neph(neph, "0")),
        *(Mgen(), Sockperf(), Irtt()),
        *(SpinLoop(spin_loop, 0), SpinLoop(spin_loop, PRIORITY)),
    ]
    return [sender for sender in all_senders if shutil.which(sender.program)]
