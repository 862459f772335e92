#!/usr/bin/env python3
"""How far off are the delays that neph hops tells, where every one of them is known?

    cargo build --release -p neph
    sudo python3 benches/hops_truth.py --neph target/release/neph

A link of the lab between two sites, TCP, UDP and pings both ways, tcpdump at both ends. Both captures
have one clock, so each packet's delay is known; one file's stamps are then moved by 3 s and 40 ppm, and
neph hops has to tell the delays without knowing. What it tells is held against the captures as
hops_frames.py reads them (which packets are the same, lost, out of order, put together of pieces), and
against the link's own record. The last line is for docs/passive.md. Needs root, tcpdump, ethtool, ping.
"""

import argparse
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from environment import Environment, sentence
from figures import table
from hops_frames import NUMBERED, SECOND, Crossed, crossed, frames, records, shifted
from lab import Lab, lab
from link_record import packets

LAB = """version = 1

[[site]]
name = "client"
address = "10.79.0.1/24"

[[site]]
name = "server"
address = "10.79.0.2/24"

[[link]]
name = "path"
a = "client"
b = "server"
"""
CLIENT, SERVER = "10.79.0.1", "10.79.0.2"
# tcpdump has a block of packets after a second at the latest, and leaves out at its end what it has not.
RETIRED = 1.3
OFFSET, PPM = 3 * SECOND, 40
NEAR = 5_000
# Shifted stamps are whole nanoseconds.
ROUNDING = 2
# Behind the two sites: hosts whose own interfaces leave cutting and joining to the kernel.
HOSTS = {"client": ("10.79.11.1", "10.79.11.2"), "server": ("10.79.12.1", "10.79.12.2")}
SNAP = "128"
# Bytes of a datagram that the kernel is asked to send in pieces, and of a piece.
WHOLE, PIECE = 4_500, 1_000
UDP_SEGMENT, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 103, 10, 2


@dataclass(frozen=True)
class Scenario:
    """A link, and what passes it."""

    name: str
    link: str
    traffic: str = "both ways"
    offload: bool = False
    # Whether the claim for the docs is about it: its quickest packets are many.
    is_claimed: bool = True


SCENARIOS = (
    Scenario("wire", ""),
    Scenario("1 ms", 'delay = "1ms"'),
    Scenario("5 ms, 1 % lost", 'delay = "5ms"\nloss = "1%"'),
    Scenario("2 ms, offload", 'delay = "2ms"', offload=True),
    Scenario("2 ms, 2 % overtake", 'delay = "2ms"\nreorder = "2%"', is_claimed=False),
    Scenario("2 ms", 'delay = "2ms"', traffic="pings", is_claimed=False),
)


@dataclass
class Told:
    """What neph said of one scenario, against what is so."""

    scenario: Scenario
    off: list[int] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)
    # Told delays outside of their bounds, told pairs of stamps that are of two packets, and packets
    # told to be lost that are not.
    beyond: int = 0
    strangers: int = 0
    alive: int = 0
    # Told and so: packets, joined ones, lost, reordered.
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    # From a sender's stamp to the link's, and from its end to the receiver's stamp; there and back.
    margins: list[tuple[int, int]] = field(default_factory=list)

    @property
    def near(self) -> int:
        return sum(abs(off) <= NEAR for off in self.off)


def inside(namespace: str, *command: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{namespace}", *command]


def done(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def hosts(up: Lab) -> Iterator[dict[str, tuple[str, str]]]:
    """A host behind each site, over a veth that cuts and joins segments; namespace and interface."""
    made = {site: f"hops{os.getpid()}{site[0]}" for site in HOSTS}
    try:
        for site, (router, host) in HOSTS.items():
            name, at_site = made[site], up.namespace(site)
            done("ip", "netns", "add", name)
            done("ip", "link", "add", "hop0", "netns", name, "type", "veth", "peer", "name", "host", "netns", at_site)
            for namespace, interface, address in ((name, "hop0", host), (at_site, "host", router)):
                done(*inside(namespace, "ip", "address", "add", f"{address}/24", "dev", interface))
                done(*inside(namespace, "ip", "link", "set", interface, "up"))
                # A veth joins only what its other end would not have cut: at the server joined
                # packets come, at the client pieces.
                tso = "off" if (site, interface) == ("server", "host") else "on"
                done(*inside(namespace, "ethtool", "-K", interface, "tso", tso, "gso", "on", "gro", "on"))
            done(*inside(name, "ip", "link", "set", "lo", "up"))
            # What comes within 30 us is joined, as an interface does that raises few interrupts.
            wait = "echo 30000 > /sys/class/net/hop0/gro_flush_timeout"
            done("ip", "netns", "exec", name, "sh", "-c", wait)
            done(*inside(name, "ip", "route", "add", "default", "via", router))
            done(*inside(at_site, "sysctl", "-qw", "net.ipv4.ip_forward=1"))
            other = next(each for each in HOSTS if each != site)
            network = f"{HOSTS[other][0].rsplit('.', 1)[0]}.0/24"
            via = SERVER if site == "client" else CLIENT
            done(*inside(at_site, "ip", "route", "add", network, "via", via, "dev", "path", "onlink"))
        yield {site: (name, "hop0") for site, name in made.items()}
    finally:
        for name in made.values():
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


@contextmanager
def reflecting(neph: str, namespace: str) -> Iterator[None]:
    """A reflector that answers."""
    child = subprocess.Popen(inside(namespace, neph, "reflect"), stderr=subprocess.PIPE, text=True)
    try:
        line = child.stderr.readline()
        if "answers" not in line:
            raise SystemExit(f"no reflector: {line}")
        yield
    finally:
        child.terminate()
        child.communicate()


@contextmanager
def capturing(namespace: str, interface: str, file: Path) -> Iterator[None]:
    """tcpdump, without waking up for each packet: that would be part of what is measured."""
    words = ["tcpdump", "-Z", "root", "-i", interface, "-s", SNAP, "-B", "65536"]
    words += ["--time-stamp-precision=nano", "-w", str(file)]
    child = subprocess.Popen(inside(namespace, *words), stderr=subprocess.PIPE, text=True)
    try:
        while "listening on" not in (line := child.stderr.readline()):
            if not line:
                raise SystemExit("tcpdump does not run")
        yield
    finally:
        child.send_signal(signal.SIGINT)
        told = child.communicate()[1]
    if " 0 packets dropped by kernel" not in " " + told.replace("\n", " "):
        raise SystemExit(f"tcpdump lost packets: {told}")


def send_whole(target: str, seconds: float) -> None:
    """Large datagrams that the kernel cuts: with numbers in IP, and without. Runs at a host."""
    with ExitStack() as stack:
        numbered, bare = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        for each in (numbered, bare):
            each.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, PIECE)
        # What may not be cut on the way and has no peer is not numbered.
        bare.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        bare.bind(("", NUMBERED))
        until, at = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            pieces = (int.to_bytes(at + begin, 8).ljust(min(PIECE, WHOLE - begin)) for begin in range(0, WHOLE, PIECE))
            whole = b"".join(pieces)
            for each in (numbered, bare):
                each.sendto(whole, (target, NUMBERED))
            at += WHOLE
            time.sleep(0.01)


def send(neph: str, scenario: Scenario, ends: dict[str, tuple[str, str, str]], seconds: int) -> None:
    """Traffic for so long: pings from the client, or TCP, UDP and pings both ways."""
    client, server = ends["client"], ends["server"]
    with ExitStack() as stack:
        for namespace, _, _ in (client, server):
            stack.enter_context(reflecting(neph, namespace))
        senders = [(client, server, "0.01")]
        if scenario.traffic == "both ways":
            senders.append((server, client, "0.013"))
        children = []
        for (namespace, _, _), (_, _, target), every in senders:
            words = [["ping", "-q", "-i", every, "-w", str(seconds), target]]
            if scenario.traffic == "both ways":
                bulk = ["--rate", "8Mbit/s", "-w", f"{seconds}s", target]
                words.append([neph, "stress", "flow", *bulk])
                words.append([neph, "stress", "stream", "--rate", "400kbit/s", "-w", f"{seconds}s", target])
            if scenario.offload:
                myself = [sys.executable, __file__, "--neph", neph, "--seconds", str(seconds)]
                words.append([*myself, "--send-whole", target])
            for each in words:
                command = inside(namespace, *each)
                children.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for child in children:
            child.wait()
        time.sleep(RETIRED)


def recorded(options: argparse.Namespace, scenario: Scenario, folder: Path) -> list[Path]:
    """Captures at both ends, in the order of the path."""
    topology = folder / "topology.toml"
    topology.write_text(LAB + scenario.link + "\n")
    files = [folder / "a.pcap", folder / "b.pcap"]
    with ExitStack() as stack:
        up = stack.enter_context(lab(options.neph, topology, f"hops{os.getpid()}", folder / "record"))
        ends = {
            "client": (up.namespace("client"), "path", CLIENT),
            "server": (up.namespace("server"), "path", SERVER),
        }
        if scenario.offload:
            behind = stack.enter_context(hosts(up))
            ends = {site: (*behind[site], HOSTS[site][1]) for site in HOSTS}
        with ExitStack() as captures:
            for (namespace, interface, _), file in zip(ends.values(), files):
                captures.enter_context(capturing(namespace, interface, file))
            time.sleep(0.3)
            send(options.neph, scenario, ends, options.seconds)
    return files


def truth(captures: list[bytes], client: str) -> list[Crossed]:
    """There and back, as the captures say themselves."""
    points = [list(frames(capture)) for capture in captures]
    address = bytes(int(part) for part in client.split("."))
    # Whatever stands in a capture shows that it lasted.
    ends = [max(stamp for _, stamp in records(capture)) for capture in captures]
    ways = []
    for is_back in (False, True):
        mine = [[f for f in point if (f.flow[1] == address) != is_back] for point in points]
        sender, receiver = reversed(mine) if is_back else mine
        ways.append(crossed(sender, receiver, ends[not is_back]))
    return ways


def hold(neph: str, scenario: Scenario, files: list[Path]) -> Told:
    """What neph hops tells once one clock is off, against what is so."""
    captures = [file.read_bytes() for file in files]
    client = HOSTS["client"][1] if scenario.offload else CLIENT
    ways = truth(captures, client)
    moved, was = shifted(captures[1], OFFSET, PPM)
    away = files[1].with_name("b-moved.pcap")
    away.write_bytes(moved)
    command = [neph, "hops", str(files[0]), str(away), "--format", "ndjson", "--packets"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    told = Told(scenario)
    packets_told, lost, reordered = 0, 0, 0
    for line in map(json.loads, lines):
        if line["kind"] == "summary":
            joined = line["split_or_merged"]
        if line["kind"] != "packet":
            continue
        is_back = line["direction"] == "reverse"
        here, there = line["timestamps_unix_ns"]
        if line["lost_in"] == 0:
            lost += 1
            told.alive += (was[there] if is_back else here) not in ways[is_back].lost
        reordered += line["reordered_in"] == [0]
        segment = line["segments"][0]
        if segment is None:
            continue
        packets_told += 1
        stamps = (was[there], here) if is_back else (here, was[there])
        told.strangers += stamps not in ways[is_back].pairs
        off = segment["ns"] - (stamps[1] - stamps[0])
        told.off.append(off)
        told.bounds.append(segment["bound_ns"])
        told.beyond += abs(off) > segment["bound_ns"] + ROUNDING
    so = {name: sum(getattr(way, name) for way in ways) for name in ("joined", "reordered")}
    told.counts = {
        "packets": (packets_told, sum(len(way.pairs) for way in ways)),
        "joined": (joined, so["joined"]),
        "lost": (lost, sum(len(way.lost) for way in ways)),
        "reordered": (reordered, so["reordered"]),
    }
    return told


def margins(files: list[Path], record: Path) -> list[tuple[int, int]]:
    """Medians of what lies between the captures' stamps and the link's, before it and behind it; there
    and back."""
    points = [{(f.flow[0], f.identity[1], *f.flow[3:]): f.stamp for f in frames(file.read_bytes())} for file in files]
    found = []
    for direction in (0, 1):
        sender, receiver = reversed(points) if direction else points
        before, behind = [], []
        for record_ in packets(record / "path.truth"):
            _, way, verdict, protocol, _, arrival, _, left, _, _, number, *ports = record_[:13]
            if way != direction or verdict or protocol not in (1, 6, 17):
                continue
            key = (protocol, number, *ports)
            # Numbers come again after 65,536 packets: a stamp of another one is far away.
            if key in sender and key in receiver and 0 <= arrival - sender[key] < SECOND > receiver[key] - left >= 0:
                before.append(arrival - sender[key])
                behind.append(receiver[key] - left)
        if before:
            found.append((round(statistics.median(before)), round(statistics.median(behind))))
    return found


def quantile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(told: Told) -> list[str]:
    off = [abs(each) for each in told.off]
    pair = {name: f"{a:,}" if a == b else f"{a:,} of {b:,}" for name, (a, b) in told.counts.items()}
    return [
        told.scenario.name, told.scenario.traffic, pair["packets"], pair["joined"], f"{told.near / len(off):.2%}",
        *(f"{value / 1e3:.2f}" for value in (quantile(off, 0.5), quantile(off, 0.999), max(off))),
        f"{quantile(told.bounds, 0.5) / 1e3:.1f}", str(told.beyond), str(told.strangers), str(told.alive),
        pair["lost"], pair["reordered"],
    ]


COLUMNS = ["link", "traffic", "packets", "of them joined", "within 5 us", "p50 off, us", "p99.9", "worst", "bound, p50",
           "beyond their bound", "wrong pairs", "wrongly lost", "lost", "reordered"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--seconds", type=int, default=20, help="of traffic on each link")
    parser.add_argument("--only", help="links whose names have this in them")
    parser.add_argument("--keep", type=Path, help="a folder that the captures and records are left in")
    parser.add_argument("--send-whole", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.send_whole:
        return send_whole(options.send_whole, options.seconds)
    options.neph = str(Path(options.neph).resolve())
    environment, all_told = Environment.begin(), []
    with tempfile.TemporaryDirectory() as name:
        for number, scenario in enumerate(SCENARIOS):
            if options.only and options.only not in scenario.name:
                continue
            folder = (options.keep or Path(name)) / str(number)
            folder.mkdir(parents=True)
            files = recorded(options, scenario, folder)
            told = hold(options.neph, scenario, files)
            if not scenario.offload:
                told.margins = margins(files, folder / "record")
            all_told.append(told)
            print(f"{scenario.name}: {told.near} of {len(told.off)} within 5 us, {told.beyond} beyond their bound; "
                  f"stamps to the link's and from it, there and back, ns: {told.margins}", file=sys.stderr)
    print(table(COLUMNS, [row(told) for told in all_told]))
    print(f"\n{sentence(environment.tell())}\n")
    both = [told for told in all_told if told.scenario.is_claimed]
    many, near = sum(len(told.off) for told in both), sum(told.near for told in both)
    joined = sum(told.counts["joined"][0] for told in both)
    beyond, every = sum(told.beyond for told in all_told), sum(len(told.off) for told in all_told)
    worst = max((abs(off) for told in both for off in told.off), default=0)
    if many:
        print(f"With traffic both ways over links of constant delay {near:,} of {many:,} delays ({near / many:.2%}; "
              f"{joined:,} of packets that offload cut or joined) were within 5 us of the true ones, none more than "
              f"{worst / 1e3:.1f} us off; of all {every:,}, {beyond:,} were beyond their bound.")
    if any(told.beyond or told.strangers or told.alive for told in all_told):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
