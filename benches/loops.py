#!/usr/bin/env python3
"""How long a reflector and another program answer each other after one spoofed packet.

    python3 benches/loops.py --neph target/release/neph [--old OTHER]

Needs root. See README.md for what is measured and how.
"""

import argparse
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from figures import table
from namespaces import Pair, entered, veth_pair

LOOPBACK = "127.0.0.1"
# Seconds that a loop may take before it is counted as one without end.
WATCH_SECONDS = 2.0
# A STAMP request without authentication (RFC 8762): number, time, error estimate, and zeroes.
REQUEST = struct.pack("!IQH30x", 0, 0xE8000000_00000000, 0x0001)


@dataclass(frozen=True)
class Peer:
    """A program that answers at a port of its own."""

    name: str
    port: int
    command: tuple[str, ...]


def spoof(source: int, destination: int) -> None:
    """One packet to a port of this host, as if another port had sent it."""
    udp = struct.pack("!HHHH", source, destination, 8 + len(REQUEST), 0) + REQUEST
    address = socket.inet_aton(LOOPBACK)
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, address, address)
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        raw.sendto(header + udp, (LOOPBACK, 0))


def loopback_packets(namespace: str) -> int:
    """Packets that went over the loopback of the namespace so far."""
    nsenter = ("nsenter", f"--net=/run/netns/{namespace}", "cat", "/proc/net/dev")
    finished = subprocess.run(nsenter, capture_output=True, text=True, check=True)
    line = next(line for line in finished.stdout.splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[1])


@contextmanager
def echo(namespace: str, port: int) -> Iterator[None]:
    """A UDP echo service in this process."""
    with entered(namespace):
        service = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        service.bind((LOOPBACK, port))
    service.settimeout(0.1)
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                packet, sender = service.recvfrom(2048)
            except TimeoutError:
                continue
            service.sendto(packet, sender)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        service.close()


@contextmanager
def running_peer(namespace: str, peer: Peer) -> Iterator[None]:
    """The program, until the block ends."""
    if not peer.command:
        with echo(namespace, peer.port):
            yield
        return
    nsenter = ("nsenter", f"--net=/run/netns/{namespace}", *peer.command)
    discard_output = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(nsenter, **discard_output) as process:
        try:
            wait_until_bound(namespace, peer.port)
            yield
        finally:
            process.terminate()


def wait_until_bound(namespace: str, port: int) -> None:
    """Waits until somebody has the UDP port."""
    nsenter = ("nsenter", f"--net=/run/netns/{namespace}", "ss", "-Hlun", f"sport = :{port}")
    for _ in range(200):
        if subprocess.run(nsenter, capture_output=True, text=True, check=True).stdout:
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody has taken port {port} in 10 s")


def count_packets(pair: Pair, first: Peer, second: Peer) -> int:
    """Packets within the time watched, of one spoofed packet to each of the two from the other."""
    namespace = pair.server
    with ExitStack() as stack:
        for peer in {first, second}:
            stack.enter_context(running_peer(namespace, peer))
        packets_before = loopback_packets(namespace)
        with entered(namespace):
            spoof(first.port, second.port)
            if first != second:
                spoof(second.port, first.port)
        time.sleep(WATCH_SECONDS)
        return loopback_packets(namespace) - packets_before


def reflector(name: str, program: Path, port: int) -> Peer:
    """A neph reflector."""
    return Peer(name, port, (str(program), "reflect", "--quiet", "--listen", f"{LOOPBACK}:{port}"))


def installed_peers() -> list[Peer]:
    """The others; programs that are not installed are left out."""
    found = [Peer("UDP echo", 7007, ())]
    if shutil.which("irtt"):
        found.append(Peer("irtt", 2112, ("irtt", "server", "-b", f"{LOOPBACK}:2112")))
    if shutil.which("stamp-suite"):
        address_options = ("--local-addr", LOOPBACK, "--local-port", "9862")
        found.append(Peer("stamp-suite", 9862, ("stamp-suite", "--is-reflector", *address_options)))
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", type=Path, required=True)
    parser.add_argument("--old", type=Path, help="another neph, beside it")
    args = parser.parse_args()
    rows = []
    for name, program in (("neph", args.neph), ("old neph", args.old)):
        if program is None:
            continue
        first = reflector(name, program.resolve(), 9090)
        others = [first, reflector(name, program.resolve(), 9191), *installed_peers()]
        for other in others:
            with veth_pair() as pair:
                count = count_packets(pair, first, other)
            other_name = "itself" if other is first else f"another {name}" if other.name == name else other.name
            rows.append((name, other_name, f"{count:,}", f"{count / WATCH_SECONDS:,.0f}"))
    print(table(("reflector", "and", f"packets in {WATCH_SECONDS:.0f} s", "packets/s"), rows))


if __name__ == "__main__":
    main()
