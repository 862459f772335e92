"""One run of one sender: its send times at the client's interface, and the lateness that it reports."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from capture import UDP, Capture, Packet
from namespaces import SERVER_ADDRESS, Pair, entered
from processes import FinishedProcess, run, server
from senders import NEPH_PORT, SINK_PORT, SOCKPERF_PORT, Neph, Sender, reported_lateness

# Warming up and negotiating is not what is measured; neph sends one packet after its schedule.
SETTLING_NS = 700_000_000
IGNORED_AT_END = 3


@dataclass(frozen=True)
class SenderRun:
    """One run of one sender."""

    stamps_ns: list[int]
    reported_lateness_ns: list[int]
    process: FinishedProcess


def measure(pair: Pair, sender: Sender, rate: int, seconds: int) -> SenderRun:
    """One run: the send times at the interface, and the lateness that the sender reports."""
    with (
        tempfile.TemporaryDirectory() as name,
        Capture(pair.client, only_outgoing=True) as capture,
    ):
        folder = Path(name)
        command = sender.command(rate, seconds, folder)
        limit = seconds if sender.runs_until_stopped else seconds + 20
        process = run(pair.client, command, folder, limit, stop_at_limit=sender.runs_until_stopped)
        if process.status != 0 and not sender.runs_until_stopped:
            raise RuntimeError(f"{sender.name} ended with {process.status}: {process.errors[-300:]}")
        stamps = _settled(capture.packets(), sender.port)
        reported_lateness_ns = reported_lateness(folder) if isinstance(sender, Neph) else []
    return SenderRun(stamps, reported_lateness_ns, process)


def _settled(packets: list[Packet], port: int) -> list[int]:
    flows: dict[tuple[int, int, int], list[int]] = {}
    for packet in packets:
        if packet.flow[0] == UDP and packet.flow[2] == port:
            flows.setdefault(packet.flow, []).append(packet.stamp_ns)
    stamps = max(flows.values(), key=len, default=[])
    if len(stamps) < 50:
        raise RuntimeError(f"only {len(stamps)} packets to port {port} were captured")
    begin = stamps[0] + SETTLING_NS
    return [stamp for stamp in stamps[:-IGNORED_AT_END] if stamp >= begin]


@contextmanager
def sink(namespace: str) -> Iterator[None]:
    """A socket that swallows datagrams, so that nobody answers that the port is closed."""
    with entered(namespace):
        sink_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sink_socket:
        sink_socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sink_socket.bind((SERVER_ADDRESS, SINK_PORT))
        yield


def servers(pair: Pair, neph: str) -> ExitStack:
    """Whoever answers the senders that want an answer."""
    stack = ExitStack()
    stack.enter_context(sink(pair.server))
    commands = [(neph, "reflect", "--listen", f"{SERVER_ADDRESS}:{NEPH_PORT}", "--quiet")]
    if shutil.which("sockperf"):
        commands += [("sockperf", "server", "-i", SERVER_ADDRESS, "-p", str(SOCKPERF_PORT))]
    if shutil.which("irtt"):
        commands += [("irtt", "server", "-i", "0", "-b", SERVER_ADDRESS)]
    for command in commands:
        stack.enter_context(server(pair.server, command))
    return stack
