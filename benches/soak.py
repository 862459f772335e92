#!/usr/bin/env python3
"""A reflector under all attacks together, from twenty namespaces, and one client that behaves.

    python3 benches/soak.py --neph target/release/neph [--seconds 3600]

Needs root. See README.md for what is measured and how.
"""

import argparse
import json
import multiprocessing
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from attacks import ATTACKS, PORT, AttackTarget
from figures import table
from namespaces import entered

# Taken once: attackers are processes of their own.
RUN_ID = os.environ.setdefault("NEPH_SOAK", str(os.getpid()))
HUB = f"nephsoak-hub{RUN_ID}"
CLIENT = f"nephsoak-client{RUN_ID}"
# Seconds between two messages of the client, and for which it measures before the attacks.
INTERVAL = 0.02
MEMORY_MB = 512


@dataclass(frozen=True)
class ClientResult:
    """What the client measured."""

    sent: int
    lost: int
    p50_us: float
    p99_us: float

    def loss_ratio(self) -> float:
        return self.lost / max(1, self.sent)


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def run_inside(namespace: str, *command: str) -> None:
    run("nsenter", f"--net=/run/netns/{namespace}", *command)


def attacker_namespace(number: int) -> str:
    return f"nephsoak-{number}-{RUN_ID}"


def join(name: str, number: int) -> None:
    """Joins a namespace to the hub: 10.98.N.2, and all of 2001:db8:N::/64."""
    link = f"v{number}"
    run("ip", "netns", "add", name)
    run(*("ip", "link", "add", link, "netns", HUB, "type", "veth"), *("peer", "name", "eth0", "netns", name))
    for namespace, device, host in ((HUB, link, 1), (name, "eth0", 2)):
        run_inside(namespace, "ip", "address", "add", f"10.98.{number}.{host}/24", "dev", device)
        address = f"2001:db8:{number:x}::{host}/64"
        run_inside(namespace, "ip", "-6", "address", "add", address, "dev", device, "nodad")
        run_inside(namespace, "ip", "link", "set", device, "up")
        run_inside(namespace, "ip", "link", "set", "lo", "up")
        run_inside(namespace, "sysctl", "-qw", f"net.ipv4.conf.{device}.rp_filter=0")
    run_inside(name, "sysctl", "-qw", "net.ipv6.ip_nonlocal_bind=1")
    run_inside(name, "ip", "-6", "route", "add", "local", f"2001:db8:{number:x}::/64", "dev", "lo")
    run_inside(HUB, "ip", "-6", "route", "replace", f"2001:db8:{number:x}::/64", "via", f"2001:db8:{number:x}::2")
    for namespace in (HUB, name):
        run_inside(namespace, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0")


@contextmanager
def star(attackers: int) -> Iterator[None]:
    """The hub, the client's namespace (number 0) and the attackers'; all are gone afterwards."""
    names = [CLIENT, *(attacker_namespace(number) for number in range(1, attackers + 1))]
    try:
        run("ip", "netns", "add", HUB)
        run_inside(HUB, "ip", "link", "set", "lo", "up")
        for number, name in enumerate(names):
            join(name, number)
        yield
    finally:
        for name in (HUB, *names):
            subprocess.run(("ip", "netns", "del", name), check=False, capture_output=True)


def attack(number: int, seconds: float) -> None:
    """A process of its own: one attack in its namespace, until the time is over."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    target = AttackTarget(
        reflector_v4=f"10.98.{number}.1",
        reflector_v6=f"2001:db8:{number:x}::1",
        attacker_v4=f"10.98.{number}.2",
        attacker_prefix=f"2001:db8:{number:x}::",
        deadline=time.monotonic() + seconds,
    )
    with entered(attacker_namespace(number)):
        ATTACKS[(number - 1) % len(ATTACKS)](target)


def start_client(neph: Path, scheme: str, seconds: float) -> subprocess.Popen[str]:
    target = f"{scheme}://10.98.0.1:{PORT}"
    command = ("nsenter", f"--net=/run/netns/{CLIENT}", str(neph), "ping", target)
    options = ("-i", str(INTERVAL), "-w", str(seconds), "--timeout", "2s", "-q", "--format", "json")
    return subprocess.Popen((*command, *options), stdout=subprocess.PIPE, text=True)


def client_result(process: subprocess.Popen[str]) -> ClientResult:
    out, _ = process.communicate()
    flow = json.loads(out)["flows"][0]
    tally, response = flow["tally"], flow["response_ns"]
    return ClientResult(
        sent=tally["messages"],
        lost=tally["messages"] - tally["replies"],
        p50_us=response["p50"]["value"] / 1e3,
        p99_us=response["p99"]["value"] / 1e3,
    )


def resident_megabytes(pid: int) -> float:
    """Megabytes in use."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def sample_memory(pid: int, seconds: float) -> list[float]:
    """Memory every second."""
    deadline, samples = time.monotonic() + seconds, []
    while time.monotonic() < deadline:
        samples.append(resident_megabytes(pid))
        time.sleep(1)
    return samples


def kernel_counter(protocol: str, name: str) -> int:
    """What the kernel counted in the hub, for IPv4 and IPv6 where it counts them one by one."""
    command = ("nsenter", f"--net=/run/netns/{HUB}", "cat", "/proc/net/snmp", "/proc/net/snmp6")
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names, values = re.findall(rf"^{protocol}: (.*)$", text, re.MULTILINE)
    ipv6_counter = re.search(rf"^{protocol}6{name}\s+(\d+)$", text, re.MULTILINE)
    return int(values.split()[names.split().index(name)]) + (int(ipv6_counter[1]) if ipv6_counter else 0)


def counter_checks(counts: dict[str, int]) -> list[list[str]]:
    """What must be equal: what the reflector counted, and what it is the sum of or the kernel counted."""
    datagrams = sum(counts[f"{end}_datagrams"] for end in ("answered", "refused", "unsent"))
    connections = counts["connections"] + counts["refused_connections"]
    rows = [
        ("connections accepted", connections, kernel_counter("Tcp", "PassiveOpens")),
        ("datagrams read", counts["datagrams"], kernel_counter("Udp", "InDatagrams")),
        ("datagrams dropped", counts["dropped_by_kernel"], kernel_counter("Udp", "RcvbufErrors")),
        ("datagrams answered, refused, unsent", datagrams, counts["datagrams"]),
    ]
    return [[check, f"{result:,}", f"{expected:,}", f"{result - expected:+,}"] for check, result, expected in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neph", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--quiet-seconds", type=float, default=60)
    options = parser.parse_args()
    with star(len(ATTACKS)), tempfile.TemporaryFile("w+") as reflector_output:
        command = ("nsenter", f"--net=/run/netns/{HUB}", str(options.neph), "reflect", "--tls", "--format", "ndjson")
        reflector_options = ("--max-memory", f"{MEMORY_MB}MiB", "--listen", f"[::]:{PORT}")
        reflector = subprocess.Popen((*command, *reflector_options), stdout=reflector_output)
        try:
            time.sleep(1)
            schemes = ("ws", "udp")
            quiet_results = [client_result(start_client(options.neph, scheme, options.quiet_seconds)) for scheme in schemes]
            attackers = [
                multiprocessing.Process(target=attack, args=(number, options.seconds + 10))
                for number in range(1, len(ATTACKS) + 1)
            ]
            for process in attackers:
                process.start()
            time.sleep(5)
            if not all(process.is_alive() for process in attackers):
                raise SystemExit("an attacker could not begin")
            clients = [start_client(options.neph, scheme, options.seconds) for scheme in schemes]
            memory = sample_memory(reflector.pid, options.seconds)
            attacked_results = [client_result(client) for client in clients]
            for process in attackers:
                process.join(timeout=20)
                process.kill()
        finally:
            reflector.send_signal(signal.SIGINT)
            reflector.wait(timeout=20)
        reflector_output.seek(0)
        counts = json.loads(reflector_output.read().strip().splitlines()[-1])["counts"]
        checks = counter_checks(counts)
    rows = [
        [scheme, phase, f"{result.sent:,}", f"{result.loss_ratio():.3%}", f"{result.p50_us:.0f}", f"{result.p99_us:.0f}"]
        for scheme, pair in zip(schemes, zip(quiet_results, attacked_results, strict=True), strict=True)
        for phase, result in zip(("quiet", "under attack"), pair, strict=True)
    ]
    print(table(["client", "", "messages", "lost", "p50 us", "p99 us"], rows))
    tenth = max(1, len(memory) // 10)
    print(
        f"\nmemory: {max(memory):.0f} MB at most, {max(memory[tenth : 2 * tenth]):.0f} in the second tenth of the "
        f"time, {max(memory[-tenth:]):.0f} in the last; --max-memory {MEMORY_MB} MiB"
    )
    print("\n" + table(["", "reflector", "sum, or kernel", "difference"], checks))
    print("\n" + ", ".join(f"{name} {count:,}" for name, count in counts.items() if count))


if __name__ == "__main__":
    main()
