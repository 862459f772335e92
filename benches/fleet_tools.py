"""The tools that send requests over many flows at the same time: the commands of client and server."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from namespaces import SERVER_ADDRESS

NEPH_PORT, IRTT_PORT, FORTIO_PORT, CLOUDPROBER_PORT, LOOP_PORT = 8080, 2112, 8078, 31122, 7007
FIRST_PORT = 20_000


@dataclass(frozen=True)
class Load:
    """The load that every tool generates."""

    flows: int
    interval_us: int
    seconds: int

    @property
    def messages(self) -> int:
        """How many requests that makes."""
        return self.flows * self.seconds * 1_000_000 // self.interval_us


class FleetTool(Protocol):
    """A tool that sends requests over many flows."""

    # Its name in the table.
    name: str
    # The port of its server.
    port: int
    # Whether it runs until it is stopped.
    runs_until_stopped: bool

    def server_command(self, folder: Path) -> list[str]:
        """The command of its server."""

    def command(self, load: Load, folder: Path) -> list[str]:
        """The command of its client."""


@dataclass(frozen=True)
class Neph:
    """`neph flows`, which keeps every message in a workspace."""

    program: str
    name: str = "neph flows"
    port: int = NEPH_PORT
    runs_until_stopped: bool = False

    def server_command(self, folder: Path) -> list[str]:
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
    runs_until_stopped: bool = False

    def server_command(self, folder: Path) -> list[str]:
        """Its own server."""
        return ["irtt", "server", "-i", "0", "-b", SERVER_ADDRESS]

    def command(self, load: Load, folder: Path) -> list[str]:
        """One shell that waits for all: their CPU time is counted with its own."""
        client_command = (
            f"irtt client -Q -i {load.interval_us}us -d {load.seconds}s -l 44 "
            f"--local=:$port {SERVER_ADDRESS} >/dev/null &"
        )
        last_port = FIRST_PORT + load.flows - 1
        return ["sh", "-c", f"for port in $(seq {FIRST_PORT} {last_port}); do {client_command} done; wait"]


@dataclass(frozen=True)
class Cloudprober:
    """Bursts: all source ports at once, each interval."""

    program: str
    name: str = "cloudprober"
    port: int = CLOUDPROBER_PORT
    runs_until_stopped: bool = True

    def server_command(self, folder: Path) -> list[str]:
        """The loop's echo: any will do."""
        return [str(folder / "fleet_loop"), "serve", str(self.port)]

    def command(self, load: Load, folder: Path) -> list[str]:
        """By a configuration file."""
        milliseconds = load.interval_us // 1000
        config_file = folder / "cloudprober.cfg"
        config_file.write_text(
            f'probe {{ name: "flows" type: UDP targets {{ host_names: "{SERVER_ADDRESS}" }}\n'
            f"interval_msec: {milliseconds} timeout_msec: {milliseconds * 3 // 4}\n"
            f"udp_probe {{ port: {self.port} num_tx_ports: {load.flows} "
            "use_all_tx_ports_per_probe: true } }\n"
        )
        return [self.program, f"--config_file={config_file}"]


@dataclass(frozen=True)
class Fortio:
    """A goroutine for each flow; it reports nothing for each flow."""

    program: str
    name: str = "fortio"
    port: int = FORTIO_PORT
    runs_until_stopped: bool = False

    def server_command(self, folder: Path) -> list[str]:
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
    runs_until_stopped: bool = False

    def server_command(self, folder: Path) -> list[str]:
        """Itself."""
        return [str(folder / "fleet_loop"), "serve", str(self.port)]

    def command(self, load: Load, folder: Path) -> list[str]:
        """Positional, as its first lines say."""
        return [
            *(str(folder / "fleet_loop"), SERVER_ADDRESS, str(self.port), str(load.flows)),
            *(str(load.interval_us), str(load.seconds), str(FIRST_PORT)),
        ]


def installed_tools(neph: str, fortio: str, cloudprober: str) -> list[FleetTool]:
    """Every tool that is installed."""
    tools: list[FleetTool] = [Neph(neph), Loop()]
    if shutil.which("irtt"):
        tools.append(Irtt())
    if shutil.which(fortio):
        tools.append(Fortio(fortio))
    if shutil.which(cloudprober):
        tools.append(Cloudprober(cloudprober))
    return tools
