#!/usr/bin/env python3
"""How large is the error of the delays that neph hops reports? Every true delay is known.

    cargo build --release -p neph
    sudo python3 benches/hops_truth.py --neph target/release/neph

A link of the lab between two sites, TCP, UDP and pings both ways, tcpdump at both ends. Both captures
have one clock, so each packet's delay is known; one file's stamps are then moved by 3 s and 40 ppm, and
neph hops has to calculate the delays without this knowledge. Its output is compared with the captures as
hops_frames.py reads them (which packets are the same, lost, out of order, joined), and with the record of
the link. The last line is for docs/passive.md. Needs root, tcpdump, ethtool, ping.
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
from hops_frames import NUMBERED_PORT, SECOND, DirectionResult, compare_points, frames, records, shift_clock
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
CAPTURE_FLUSH_S = 1.3
OFFSET, PPM = 3 * SECOND, 40
NEAR_NS = 5_000
# Shifted stamps are whole nanoseconds.
ROUNDING = 2
# Behind the two sites: hosts whose own interfaces leave cutting and joining to the kernel.
HOSTS = {"client": ("10.79.11.1", "10.79.11.2"), "server": ("10.79.12.1", "10.79.12.2")}
SNAP = "128"
# Bytes of a datagram that the kernel is asked to send in pieces, and of a piece.
DATAGRAM_BYTES, SEGMENT_BYTES = 4_500, 1_000
UDP_SEGMENT, IP_MTU_DISCOVER, IP_PMTUDISC_DO = 103, 10, 2


@dataclass(frozen=True)
class Scenario:
    """A link, and what passes it."""

    name: str
    link: str
    traffic: str = "both ways"
    offload: bool = False
    # Whether the claim in the docs includes it: many of its packets take the shortest time.
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
class Comparison:
    """The result of neph for one scenario, compared with the true delays."""

    scenario: Scenario
    errors_ns: list[int] = field(default_factory=list)
    bounds_ns: list[int] = field(default_factory=list)
    # Reported delays outside of their error bounds, reported pairs of timestamps of different packets,
    # and packets reported as lost that are not lost.
    outside_bound: int = 0
    wrong_pairs: int = 0
    wrongly_lost: int = 0
    # Reported and true numbers of packets, joined ones, lost, reordered.
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    # From a sender's timestamp to the link's, and from the link to the receiver's; forward and reverse.
    margins: list[tuple[int, int]] = field(default_factory=list)

    @property
    def near(self) -> int:
        return sum(abs(error_ns) <= NEAR_NS for error_ns in self.errors_ns)


def inside(namespace: str, *command: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{namespace}", *command]


def run_checked(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


@contextmanager
def hosts(lab_up: Lab) -> Iterator[dict[str, tuple[str, str]]]:
    """A host behind each site, over a veth that cuts and joins segments; namespace and interface."""
    namespaces = {site: f"hops{os.getpid()}{site[0]}" for site in HOSTS}
    try:
        for site, (router, host) in HOSTS.items():
            name, at_site = namespaces[site], lab_up.namespace(site)
            run_checked("ip", "netns", "add", name)
            run_checked("ip", "link", "add", "hop0", "netns", name, "type", "veth", "peer", "name", "host", "netns", at_site)
            for namespace, interface, address in ((name, "hop0", host), (at_site, "host", router)):
                run_checked(*inside(namespace, "ip", "address", "add", f"{address}/24", "dev", interface))
                run_checked(*inside(namespace, "ip", "link", "set", interface, "up"))
                # A veth joins only what its other end would not have cut: at the server joined
                # packets come, at the client pieces.
                tso = "off" if (site, interface) == ("server", "host") else "on"
                run_checked(*inside(namespace, "ethtool", "-K", interface, "tso", tso, "gso", "on", "gro", "on"))
            run_checked(*inside(name, "ip", "link", "set", "lo", "up"))
            # What comes within 30 us is joined, as an interface does that raises few interrupts.
            wait = "echo 30000 > /sys/class/net/hop0/gro_flush_timeout"
            run_checked("ip", "netns", "exec", name, "sh", "-c", wait)
            run_checked(*inside(name, "ip", "route", "add", "default", "via", router))
            run_checked(*inside(at_site, "sysctl", "-qw", "net.ipv4.ip_forward=1"))
            other = next(each for each in HOSTS if each != site)
            network = f"{HOSTS[other][0].rsplit('.', 1)[0]}.0/24"
            via = SERVER if site == "client" else CLIENT
            run_checked(*inside(at_site, "ip", "route", "add", network, "via", via, "dev", "path", "onlink"))
        yield {site: (name, "hop0") for site, name in namespaces.items()}
    finally:
        for name in namespaces.values():
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


@contextmanager
def running_reflector(neph: str, namespace: str) -> Iterator[None]:
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
def running_tcpdump(namespace: str, interface: str, file: Path) -> Iterator[None]:
    """tcpdump, without waking up for each packet: that would be part of what is measured."""
    command = ["tcpdump", "-Z", "root", "-i", interface, "-s", SNAP, "-B", "65536"]
    command += ["--time-stamp-precision=nano", "-w", str(file)]
    child = subprocess.Popen(inside(namespace, *command), stderr=subprocess.PIPE, text=True)
    try:
        while "listening on" not in (line := child.stderr.readline()):
            if not line:
                raise SystemExit("tcpdump does not run")
        yield
    finally:
        child.send_signal(signal.SIGINT)
        stderr = child.communicate()[1]
    if " 0 packets dropped by kernel" not in " " + stderr.replace("\n", " "):
        raise SystemExit(f"tcpdump lost packets: {stderr}")


def send_whole(target: str, seconds: float) -> None:
    """Large datagrams that the kernel cuts: with numbers in IP, and without. Runs at a host."""
    with ExitStack() as stack:
        numbered, unnumbered = (stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2))
        for each in (numbered, unnumbered):
            each.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, SEGMENT_BYTES)
        # What may not be cut on the way and has no peer is not numbered.
        unnumbered.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        unnumbered.bind(("", NUMBERED_PORT))
        deadline, offset = time.monotonic() + seconds, 0
        while time.monotonic() < deadline:
            segments = (int.to_bytes(offset + begin, 8).ljust(min(SEGMENT_BYTES, DATAGRAM_BYTES - begin)) for begin in range(0, DATAGRAM_BYTES, SEGMENT_BYTES))
            datagram = b"".join(segments)
            for each in (numbered, unnumbered):
                each.sendto(datagram, (target, NUMBERED_PORT))
            offset += DATAGRAM_BYTES
            time.sleep(0.01)


def send_traffic(neph: str, scenario: Scenario, ends: dict[str, tuple[str, str, str]], seconds: int) -> None:
    """Traffic for so long: pings from the client, or TCP, UDP and pings both ways."""
    client, server = ends["client"], ends["server"]
    with ExitStack() as stack:
        for namespace, _, _ in (client, server):
            stack.enter_context(running_reflector(neph, namespace))
        senders = [(client, server, "0.01")]
        if scenario.traffic == "both ways":
            senders.append((server, client, "0.013"))
        children = []
        for (namespace, _, _), (_, _, target), ping_interval in senders:
            commands = [["ping", "-q", "-i", ping_interval, "-w", str(seconds), target]]
            if scenario.traffic == "both ways":
                bulk = ["--rate", "8Mbit/s", "-w", f"{seconds}s", target]
                commands.append([neph, "stress", "flow", *bulk])
                commands.append([neph, "stress", "stream", "--rate", "400kbit/s", "-w", f"{seconds}s", target])
            if scenario.offload:
                myself = [sys.executable, __file__, "--neph", neph, "--seconds", str(seconds)]
                commands.append([*myself, "--send-whole", target])
            for arguments in commands:
                command = inside(namespace, *arguments)
                children.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for child in children:
            child.wait()
        time.sleep(CAPTURE_FLUSH_S)


def record_captures(options: argparse.Namespace, scenario: Scenario, folder: Path) -> list[Path]:
    """Captures at both ends, in the order of the path."""
    topology = folder / "topology.toml"
    topology.write_text(LAB + scenario.link + "\n")
    files = [folder / "a.pcap", folder / "b.pcap"]
    with ExitStack() as stack:
        lab_up = stack.enter_context(lab(options.neph, topology, f"hops{os.getpid()}", folder / "record"))
        ends = {
            "client": (lab_up.namespace("client"), "path", CLIENT),
            "server": (lab_up.namespace("server"), "path", SERVER),
        }
        if scenario.offload:
            host_namespaces = stack.enter_context(hosts(lab_up))
            ends = {site: (*host_namespaces[site], HOSTS[site][1]) for site in HOSTS}
        with ExitStack() as captures:
            for (namespace, interface, _), file in zip(ends.values(), files):
                captures.enter_context(running_tcpdump(namespace, interface, file))
            time.sleep(0.3)
            send_traffic(options.neph, scenario, ends, options.seconds)
    return files


def true_results(captures: list[bytes], client: str) -> list[DirectionResult]:
    """Forward and reverse direction, from the unchanged captures."""
    points = [list(frames(capture)) for capture in captures]
    address = bytes(int(part) for part in client.split("."))
    # The latest packet of a capture shows how long it lasted.
    ends = [max(stamp for _, stamp in records(capture)) for capture in captures]
    directions = []
    for is_reverse in (False, True):
        direction_frames = [[f for f in point if (f.flow[1] == address) != is_reverse] for point in points]
        sender, receiver = reversed(direction_frames) if is_reverse else direction_frames
        directions.append(compare_points(sender, receiver, ends[not is_reverse]))
    return directions


def compare_with_neph(neph: str, scenario: Scenario, files: list[Path]) -> Comparison:
    """Compares the output of neph hops on captures with different clocks with the true delays."""
    captures = [file.read_bytes() for file in files]
    client = HOSTS["client"][1] if scenario.offload else CLIENT
    directions = true_results(captures, client)
    shifted, true_stamps = shift_clock(captures[1], OFFSET, PPM)
    shifted_file = files[1].with_name("b-moved.pcap")
    shifted_file.write_bytes(shifted)
    command = [neph, "hops", str(files[0]), str(shifted_file), "--format", "ndjson", "--packets"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    comparison = Comparison(scenario)
    packet_count, lost, reordered = 0, 0, 0
    for line in map(json.loads, lines):
        if line["kind"] == "summary":
            joined = line["split_or_merged"]
        if line["kind"] != "packet":
            continue
        is_reverse = line["direction"] == "reverse"
        client_stamp, server_stamp = line["timestamps_unix_ns"]
        if line["lost_in"] == 0:
            lost += 1
            comparison.wrongly_lost += (true_stamps[server_stamp] if is_reverse else client_stamp) not in directions[is_reverse].lost
        reordered += line["reordered_in"] == [0]
        segment = line["segments"][0]
        if segment is None:
            continue
        packet_count += 1
        stamps = (true_stamps[server_stamp], client_stamp) if is_reverse else (client_stamp, true_stamps[server_stamp])
        comparison.wrong_pairs += stamps not in directions[is_reverse].pairs
        error_ns = segment["ns"] - (stamps[1] - stamps[0])
        comparison.errors_ns.append(error_ns)
        comparison.bounds_ns.append(segment["bound_ns"])
        comparison.outside_bound += abs(error_ns) > segment["bound_ns"] + ROUNDING
    true_counts = {name: sum(getattr(direction, name) for direction in directions) for name in ("joined", "reordered")}
    comparison.counts = {
        "packets": (packet_count, sum(len(direction.pairs) for direction in directions)),
        "joined": (joined, true_counts["joined"]),
        "lost": (lost, sum(len(direction.lost) for direction in directions)),
        "reordered": (reordered, true_counts["reordered"]),
    }
    return comparison


def margins(files: list[Path], record: Path) -> list[tuple[int, int]]:
    """Median times from the captures' timestamps to the link's, before and after the link; forward and
    reverse."""
    points = [{(f.flow[0], f.identity[1], *f.flow[3:]): f.stamp for f in frames(file.read_bytes())} for file in files]
    found = []
    for direction in (0, 1):
        sender, receiver = reversed(points) if direction else points
        before_link, after_link = [], []
        for fields in packets(record / "path.truth"):
            _, record_direction, verdict, protocol, _, arrival, _, departure, _, _, number, *ports = fields[:13]
            if record_direction != direction or verdict or protocol not in (1, 6, 17):
                continue
            key = (protocol, number, *ports)
            # IP ids repeat after 65,536 packets: the timestamp of another packet is far away.
            if key in sender and key in receiver and 0 <= arrival - sender[key] < SECOND > receiver[key] - departure >= 0:
                before_link.append(arrival - sender[key])
                after_link.append(receiver[key] - departure)
        if before_link:
            found.append((round(statistics.median(before_link)), round(statistics.median(after_link))))
    return found


def quantile(values: list[int], share: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(comparison: Comparison) -> list[str]:
    errors_ns = [abs(each) for each in comparison.errors_ns]
    pair = {name: f"{a:,}" if a == b else f"{a:,} of {b:,}" for name, (a, b) in comparison.counts.items()}
    return [
        comparison.scenario.name, comparison.scenario.traffic, pair["packets"], pair["joined"], f"{comparison.near / len(errors_ns):.2%}",
        *(f"{value / 1e3:.2f}" for value in (quantile(errors_ns, 0.5), quantile(errors_ns, 0.999), max(errors_ns))),
        f"{quantile(comparison.bounds_ns, 0.5) / 1e3:.1f}", str(comparison.outside_bound), str(comparison.wrong_pairs), str(comparison.wrongly_lost),
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
    environment, comparisons = Environment.begin(), []
    with tempfile.TemporaryDirectory() as name:
        for number, scenario in enumerate(SCENARIOS):
            if options.only and options.only not in scenario.name:
                continue
            folder = (options.keep or Path(name)) / str(number)
            folder.mkdir(parents=True)
            files = record_captures(options, scenario, folder)
            comparison = compare_with_neph(options.neph, scenario, files)
            if not scenario.offload:
                comparison.margins = margins(files, folder / "record")
            comparisons.append(comparison)
            print(f"{scenario.name}: {comparison.near} of {len(comparison.errors_ns)} within 5 us, {comparison.outside_bound} beyond their bound; "
                  f"stamps to the link's and from it, there and back, ns: {comparison.margins}", file=sys.stderr)
    print(table(COLUMNS, [row(comparison) for comparison in comparisons]))
    print(f"\n{sentence(environment.facts())}\n")
    claimed = [comparison for comparison in comparisons if comparison.scenario.is_claimed]
    delay_count, near = sum(len(comparison.errors_ns) for comparison in claimed), sum(comparison.near for comparison in claimed)
    joined = sum(comparison.counts["joined"][0] for comparison in claimed)
    outside_bound, all_delays = sum(comparison.outside_bound for comparison in comparisons), sum(len(comparison.errors_ns) for comparison in comparisons)
    worst = max((abs(error_ns) for comparison in claimed for error_ns in comparison.errors_ns), default=0)
    if delay_count:
        print(f"With traffic both ways over links of constant delay {near:,} of {delay_count:,} delays ({near / delay_count:.2%}; "
              f"{joined:,} of packets that offload cut or joined) were within 5 us of the true ones, none more than "
              f"{worst / 1e3:.1f} us off; of all {all_delays:,}, {outside_bound:,} were beyond their bound.")
    if any(comparison.outside_bound or comparison.wrong_pairs or comparison.wrongly_lost for comparison in comparisons):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
