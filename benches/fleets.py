"""The tools that can ask over many flows at a time: how each is called, and who answers it."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from namespaces import SERVER_ADDRESS

NEPH_PORT, IRTT_PORT, FORTIO_PORT, CLOUDPROBER_PORT, LOOP_PORT = 8080, 2112, 8078, 31122, 7007
FIRST_PORT = 20_000


@dataclass(frozen=True)
class Load:
    """What every tool is asked to do."""

    flows: int
    interval_us: int
    seconds: int

    @property
    def messages(self) -> int:
        """How many requests that makes."""
        return self.flows * self.seconds * 1_000_000 // self.interval_us


class Asker(Protocol):
    """A tool that asks over many flows."""

    # As the table calls it.
    name: str
    # The port it asks at.
    port: int
    # Whether it must be told to end.
    endless: bool

    def answerer(self, folder: Path) -> list[str]:
        """Who answers it."""

    def command(self, load: Load, folder: Path) -> list[str]:
        """How to have it ask."""


@dataclass(frozen=True)
class Neph:
    """`neph flows`, which keeps every message in a workspace."""

    program: str
    name: str = "neph flows"
    port: int = NEPH_PORT
    endless: bool = False

    def answerer(self, folder: Path) -> list[str]:
        """Our reflector, which permits one address as much as the largest run asks."""
        return [
            *(self.program, "reflect", "--listen", f"{SERVER_ADDRESS}:{self.port}", "--quiet"),
            *("--max-rate", "200000"),
        ]

    def command(self, load: Load, folder: Path) -> list[str]:
        """The summary as JSON, every message kept."""
        return [
            *(self.program, "flows", f"udp://{SERVER_ADDRESS}:{self.port}"),
            *("--flows", str(load.flows), "--interval", f"{load.interval_us}us"),
            *("--duration", f"{load.seconds}s", "--first-port", "10000", "--rate-cap", "200000"),
            *("--format", "json", "--output", str(folder / "summary.json"), "--quiet", "--force"),
            *("--save", "flows", "--workspace", str(folder / "workspace")),
        ]


@dataclass(frozen=True)
class Irtt:
    """A process for each flow: irtt has one flow a process."""

    name: str = "irtt, a process each"
    port: int = IRTT_PORT
    endless: bool = False

    def answerer(self, folder: Path) -> list[str]:
        """Its own server."""
        return ["irtt", "server", "-i", "0", "-b", SERVER_ADDRESS]

    def command(self, load: Load, folder: Path) -> list[str]:
        """One shell that waits for all: their CPU time is counted with its own."""
        ask = (
            f"irtt client -Q -i {load.interval_us}us -d {load.seconds}s -l 44 "
            f"--local=:$port {SERVER_ADDRESS} >/dev/null &"
        )
        last = FIRST_PORT + load.flows - 1
        return ["sh", "-c", f"for port in $(seq {FIRST_PORT} {last}); do {ask} done; wait"]


@dataclass(frozen=True)
class Cloudprober:
    """Bursts: all source ports at once, each interval."""

    program: str
    name: str = "cloudprober"
    port: int = CLOUDPROBER_PORT
    endless: bool = True

    def answerer(self, folder: Path) -> list[str]:
        """The loop's echo: any will do."""
        return [str(folder / "fleet_loop"), "serve", str(self.port)]

    def command(self, load: Load, folder: Path) -> list[str]:
        """By a configuration file."""
        milliseconds = load.interval_us // 1000
        file = folder / "cloudprober.cfg"
        file.write_text(
            f'probe {{ name: "flows" type: UDP targets {{ host_names: "{SERVER_ADDRESS}" }}\n'
            f"interval_msec: {milliseconds} timeout_msec: {milliseconds * 3 // 4}\n"
            f"udp_probe {{ port: {self.port} num_tx_ports: {load.flows} "
            "use_all_tx_ports_per_probe: true } }\n"
        )
        return [self.program, f"--config_file={file}"]


@dataclass(frozen=True)
class Fortio:
    """A goroutine for each flow; nothing is told of a flow."""

    program: str
    name: str = "fortio"
    port: int = FORTIO_PORT
    endless: bool = False

    def answerer(self, folder: Path) -> list[str]:
        """Its own echo."""
        return [self.program, "udp-echo", "-udp-port", str(self.port)]

    def command(self, load: Load, folder: Path) -> list[str]:
        """With its jitter, which spreads the sends."""
        rate = load.flows * 1_000_000 // load.interval_us
        return [
            *(self.program, "load", "-quiet", "-c", str(load.flows), "-qps", str(rate)),
            *("-t", f"{load.seconds}s", "-jitter", "-payload-size", "44"),
            f"udp://{SERVER_ADDRESS}:{self.port}",
        ]


@dataclass(frozen=True)
class Loop:
    """fleet_loop.c: the least it can cost."""

    name: str = "C loop (epoll)"
    port: int = LOOP_PORT
    endless: bool = False

    def answerer(self, folder: Path) -> list[str]:
        """Itself."""
        return [str(folder / "fleet_loop"), "serve", str(self.port)]

    def command(self, load: Load, folder: Path) -> list[str]:
        """Positional, as its first lines say."""
        return [
            *(str(folder / "fleet_loop"), SERVER_ADDRESS, str(self.port), str(load.flows)),
            *(str(load.interval_us), str(load.seconds), str(FIRST_PORT)),
        ]


def installed(neph: str, fortio: str, cloudprober: str) -> list[Asker]:
    """Every tool that is there."""
    askers: list[Asker] = [Neph(neph), Loop()]
    if shutil.which("irtt"):
        askers.append(Irtt())
    if shutil.which(fortio):
        askers.append(Fortio(fortio))
    if shutil.which(cloudprober):
        askers.append(Cloudprober(cloudprober))
    return askers
