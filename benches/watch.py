"""How much a watcher slows down the watched traffic, and how many packets it loses.

    cargo build --release -p neph
    python3 benches/watch.py --neph target/release/neph transactions
    python3 benches/watch.py --neph target/release/neph drops
    python3 benches/watch.py --neph target/release/neph ping

`transactions`: a TCP echo with 64 connections over a veth pair, its offloads as the kernel gives them
(without them neph watch takes the ring unasked); transactions a second with nobody
watching, with neph watch (by BPF programs and by its packet ring), tcpdump -w and tshark, by turns,
each round beside its own "nobody".
`drops`: frames of 1,000 TCP connections at rising rates, tcpdump -w and neph watch side by side on the
same packets; of each what the kernel says it dropped. `ping`: the thesis's table 3.1: 100 and 500
ICMP echoes of ping, beside as many TCP round trips that neph watch saw, on the same lab link: of a
server whose kernel acknowledges at once, as it answers ping, and of one whose program echoes.
"""

import argparse
import json
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import time

import environment
import namespaces
import processes

HERE = pathlib.Path(__file__).parent
PORT = "7700"
SINK_PORT = "7701"
STARTUP_S = 1.0


def watcher_command(name: str, neph: str, interface: str, folder: pathlib.Path) -> list[str] | None:
    """The command of a watcher; files are written to memory."""
    prefix = pathlib.Path("/dev/shm") / folder.name
    return {
        "nobody": None,
        "neph watch": [neph, "watch", interface],
        "neph watch --listen ring": [neph, "watch", interface, "--listen", "ring"],
        "neph watch --write": [neph, "watch", interface, "--write", f"{prefix}.neph.pcap"],
        "tcpdump -w": ["tcpdump", "-i", interface, "-w", f"{prefix}.tcpdump.pcap"],
        "tshark": ["tshark", "-n", "-i", interface, "-T", "fields", "-e", "tcp.analysis.ack_rtt"],
    }[name]


class RunningWatcher:
    """A watcher that runs until `stop`."""

    def __init__(self, namespace: str, command: list[str] | None, folder: pathlib.Path) -> None:
        self.child, self.folder = None, folder
        if command:
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                nsenter = ["nsenter", f"--net=/run/netns/{namespace}", *command]
                self.child = subprocess.Popen(nsenter, stdout=out, stderr=err)
            time.sleep(STARTUP_S)
            if self.child.poll() is not None:
                raise SystemExit(f"{command[0]} ended: {(folder / 'err').read_text()}")

    def stop(self) -> tuple[float, str, str]:
        """CPU seconds of the watcher and its children, and its output."""
        if not self.child:
            return 0.0, "", ""
        self.child.send_signal(signal.SIGINT)
        _, _, usage = processes.os.wait4(self.child.pid, 0)
        self.child.returncode = 0
        out, err = ((self.folder / name).read_text(errors="replace") for name in ("out", "err"))
        return usage.ru_utime + usage.ru_stime, out, err


def remove_captures(folder: pathlib.Path) -> None:
    for file in pathlib.Path("/dev/shm").glob(f"{folder.name}.*"):
        file.unlink()


def run_inside(namespace: str, command: list[str]) -> str:
    return subprocess.run(
        ["nsenter", f"--net=/run/netns/{namespace}", *command], check=True, capture_output=True, text=True
    ).stdout


def transactions(options: argparse.Namespace, load: str, folder: pathlib.Path) -> None:
    names = ["neph watch", "neph watch --listen ring", "neph watch --write", "tcpdump -w", "tshark"]
    names = [name for name in names if name in (options.only or names)]
    shares: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    baseline_rates: list[float] = []
    listen_modes: dict[str, str] = {}
    with namespaces.veth_pair(disable_offloads=False) as pair:
        serve = [load, "serve", namespaces.SERVER_ADDRESS, PORT]
        with processes.server(pair.server, serve):

            def rate(name: str) -> tuple[float, float]:
                running_watcher = RunningWatcher(
                    pair.client, watcher_command(name, options.neph, namespaces.INTERFACE, folder), folder
                )
                ask = [load, "ask", namespaces.SERVER_ADDRESS, PORT, "64", str(options.seconds)]
                count, seconds = run_inside(pair.client, ask).split()
                cpu_seconds, _, err = running_watcher.stop()
                listen_modes[name] = listen_mode(err)
                remove_captures(folder)
                return int(count) / float(seconds), cpu_seconds / int(count) * 1e6

            for number in range(options.rounds):
                for name in names[number % len(names):] + names[: number % len(names)]:
                    before, _ = rate("nobody")
                    watched_rate, cpu_us = rate(name)
                    after, _ = rate("nobody")
                    baseline_rates.append((before + after) / 2)
                    shares[name].append(watched_rate / baseline_rates[-1])
                    cpu[name].append(cpu_us)
    print(f"\nnobody watching: {statistics.median(baseline_rates):,.0f} transactions a second (median)\n")
    print("| watching | transactions, of those with nobody | smallest, largest | CPU us a transaction |\n|---|---|---|---|")
    for name in names:
        share = shares[name]
        print(f"| {name}{listen_modes[name]} | {statistics.median(share):.1%} | {min(share):.1%}, {max(share):.1%} "
              f"| {statistics.median(cpu[name]):.2f} |")


def listen_mode(err: str) -> str:
    """The way of capture that neph reports: its default depends on the interface."""
    match = re.search(r"looking at \S+ \((\w+)\)", err)
    return f" ({match[1]})" if match else ""


def packet_counts(name: str, out: str, err: str) -> tuple[int, int]:
    """Packets that were read or written, and packets that were dropped."""
    if name.startswith("neph"):
        file = json.loads(out.splitlines()[-1])["files"][0]
        return file["packets"], file["packets_lost_by_capture"]
    captured = re.search(r"(\d+) packets? captured", err)
    dropped = re.search(r"(\d+) packets? dropped by kernel", err)
    return int(captured[1]) if captured else 0, int(dropped[1]) if dropped else 0


def drops(options: argparse.Namespace, load: str, folder: pathlib.Path) -> None:
    names = ["tcpdump -w", "neph watch", "neph watch --listen ring", "neph watch --write"]
    print("\n| asked for | watching | frames a second | seen | dropped | CPU us a frame |\n|---|---|---|---|---|---|")
    with namespaces.veth_pair(disable_offloads=False) as pair:
        for rate in options.rates:
            for name in names:
                command = watcher_command(name, options.neph, namespaces.INTERFACE, folder)
                if name.startswith("neph"):
                    command += ["--format", "ndjson"]
                running_watcher = RunningWatcher(pair.server, command, folder)
                flood = [load, "flood", namespaces.INTERFACE, str(rate), str(options.seconds), "1000"]
                sent, seconds = run_inside(pair.client, flood).split()
                time.sleep(1)
                cpu_seconds, out, err = running_watcher.stop()
                remove_captures(folder)
                packets, dropped = packet_counts(name, out, err)
                print(f"| {rate:,} | {name}{listen_mode(err)} | {int(sent) / float(seconds):,.0f} | {packets:,} | {dropped:,} "
                      f"| {cpu_seconds / max(packets, 1) * 1e6:.2f} |", flush=True)


class Connection:
    """A TCP connection from a namespace that sends messages."""

    def __init__(self, namespace: str, address: str, port: str) -> None:
        with namespaces.entered(namespace):
            self.socket = socket.create_connection((address, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send_message(self, is_answered: bool) -> None:
        self.socket.sendall(b"x" * 56)
        if is_answered:
            self.socket.recv(4096)


def ping(options: argparse.Namespace, load: str, folder: pathlib.Path) -> None:
    topology = folder / "link.toml"
    topology.write_text(LINK)
    name = f"watchbench{processes.os.getpid()}"
    subprocess.run([options.neph, "lab", "up", str(topology), "--name", name, "--detach"], check=True, capture_output=True)
    try:
        client, server, address = f"neph-{name}-client", f"neph-{name}-server", "10.98.0.2"
        interface = run_inside(client, ["ip", "-o", "route", "get", address]).split(" dev ")[1].split()[0]
        print("\n| ms | minimum | median | mean | maximum | deviation | n |\n|---|---|---|---|---|---|---|")
        # The kernel acknowledges each segment at once, as it answers ping; a program that asks for that
        # by an option only releases what waits when it is woken.
        route = ["10.98.0.0/24", "dev", run_inside(server, ["ip", "-o", "route", "get", "10.98.0.1"]).split(" dev ")[1].split()[0]]
        run_inside(server, ["ip", "route", "replace", *route, "proto", "kernel", "scope", "link", "src", address, "quickack", "1"])
        echo, sink = [load, "serve", address, PORT], [load, "sink", address, SINK_PORT]
        with processes.server(server, echo), processes.server(server, sink):
            for count in (100, 500):
                compare_with_ping(options.neph, client, (interface, address), count, folder)
    finally:
        subprocess.run([options.neph, "lab", "down", name], check=True, capture_output=True)


def compare_with_ping(neph: str, client: str, path: tuple[str, str], count: int, folder: pathlib.Path) -> None:
    """Sends `count` echoes of ping and messages on two connections, all at the same time."""
    interface, address = path
    ports = ["--port", PORT, "--port", SINK_PORT]
    running_watcher = RunningWatcher(client, [neph, "watch", interface, *ports, "--format", "ndjson", "--samples"], folder)
    command = ["ping", "-c", str(count), "-i", "0.02", address]
    ping_process = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{client}", *command], stdout=subprocess.PIPE, text=True
    )
    echo, sink = Connection(client, address, PORT), Connection(client, address, SINK_PORT)
    for _ in range(count):
        sink.send_message(is_answered=False)
        time.sleep(0.01)
        echo.send_message(is_answered=True)
        time.sleep(0.01)
    out, _ = ping_process.communicate()
    _, lines, _ = running_watcher.stop()
    samples = [json.loads(line) for line in lines.splitlines()]
    row(f"ping, {count}", [float(ms) for ms in re.findall(r"time=([\d.]+) ms", out)])
    for label, port, answer_kinds in [("path", SINK_PORT, ("without_data",)), ("with data", PORT, ("with_data",))]:
        for method in ("acknowledgement", "echo"):
            round_trips = [sample["round_trip_ns"] / 1e6 for sample in samples
                     if sample["kind"] == "sample" and sample["side"] == "server" and sample["method"] == method
                     and sample["answer"] in answer_kinds and sample["server"].endswith(f":{port}")]
            row(f"neph watch, {count}, {label}, by {method}", round_trips)


def row(name: str, ms: list[float]) -> None:
    if len(ms) < 2:
        print(f"| {name} | too few: {len(ms)} |")
        return
    print(f"| {name} | {min(ms):.3f} | {statistics.median(ms):.3f} | {statistics.mean(ms):.3f} | {max(ms):.3f} | {statistics.pstdev(ms):.3f} | {len(ms)} |")


LINK = """\
version = 1
[[site]]
name = "client"
address = "10.98.0.1/24"
[[site]]
name = "server"
address = "10.98.0.2/24"
[[link]]
name = "path"
a = "client"
b = "server"
delay = "250us"
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", nargs="+", help="of transactions: these watchers, by their names in the table")
    parser.add_argument("--rates", type=int, nargs="+", default=[50_000, 100_000, 200_000, 300_000, 400_000, 600_000])
    parser.add_argument("what", choices=["transactions", "drops", "ping"])
    parser.add_argument("--nice", type=int, default=0, help="of all that runs here; below 0 before other work")
    options = parser.parse_args()
    processes.os.nice(options.nice)
    start_environment = environment.Environment.begin()
    with tempfile.TemporaryDirectory(prefix="nephwatch") as name:
        folder = pathlib.Path(name)
        load = folder / "watch_load"
        subprocess.run(["cc", "-O2", "-o", load, HERE / "watch_load.c"], check=True)
        {"transactions": transactions, "drops": drops, "ping": ping}[options.what](options, str(load), folder)
    print("\n" + environment.sentence(start_environment.facts()))


if __name__ == "__main__":
    main()
