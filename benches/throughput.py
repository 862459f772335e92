"""Throughput of neph and iperf3 over a veth pair: Gbit/s, and CPU seconds per gigabyte of both ends.

    cargo build --release -p neph
    python3 benches/throughput.py --neph target/release/neph --json throughput.json

Two network namespaces joined by a veth pair, offloads as the kernel sets them. All tools run in each
round, in a new random order; the figures are medians over the rounds.
"""

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time

CLIENT, SERVER = f"nephtp{os.getpid()}a", f"nephtp{os.getpid()}b"
ADDRESS = "10.97.0.2"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def create_namespaces():
    for name in (CLIENT, SERVER):
        ip("netns", "add", name)
    ip("link", "add", "tp0", "netns", CLIENT, "type", "veth", "peer", "name", "tp1", "netns", SERVER)
    for name, interface, address in ((CLIENT, "tp0", "10.97.0.1"), (SERVER, "tp1", ADDRESS)):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", interface)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", interface, "up")


def delete_namespaces():
    for name in (CLIENT, SERVER):
        subprocess.run(["ip", "netns", "del", name], check=False)


def nsenter(name, *arguments):
    return ["nsenter", f"--net=/run/netns/{name}", *arguments]


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(server, client, seconds):
    """The client's output, and the CPU time of both ends together."""
    cpu_before = cpu_of_children()
    server_process = subprocess.Popen(nsenter(SERVER, *server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            sockets = subprocess.run(nsenter(SERVER, "ss", "-Hltn"), capture_output=True, text=True).stdout
            if ":7420" in sockets or ":5201" in sockets:
                break
            time.sleep(0.05)
        finished = subprocess.run(nsenter(CLIENT, *client), capture_output=True, text=True, timeout=seconds + 60)
    finally:
        server_process.terminate()
        server_process.wait()
    if finished.returncode:
        sys.exit(f"{' '.join(client)}: {finished.stdout[-500:]} {finished.stderr[-500:]}")
    return json.loads(finished.stdout), cpu_of_children() - cpu_before


def neph_measurement(options):
    def measure(args):
        client = [args.neph, "throughput", ADDRESS, *options, "-w", f"{args.seconds}s", "--format", "json"]
        output, cpu = run([args.neph, "throughput", "serve"], client, args.seconds)
        [result] = output["directions"]
        return {
            "bit_s": result["goodput_bit_s"],
            "cpu_per_gb": cpu / (result["received_bytes"] / 1e9),
            "lost_percent": (result["udp"] or {}).get("lost_percent", 0.0),
            "limit": result["limit"],
        }

    return measure


def iperf3_measurement(options):
    def measure(args):
        client = ["iperf3", "-J", "-c", ADDRESS, "-t", str(args.seconds), *options]
        output, cpu = run(["iperf3", "-s"], client, args.seconds)
        totals = output["end"]
        # Of UDP `sum` has what the client sent, and what the server counted as lost.
        if "-u" in options:
            received = totals["sum"]["bytes"] * (1 - totals["sum"]["lost_percent"] / 100)
            lost = totals["sum"]["lost_percent"]
            seconds = totals["sum"]["seconds"]
        else:
            received, lost = totals["sum_received"]["bytes"], 0.0
            seconds = totals["sum_received"]["seconds"]
        return {
            "bit_s": received * 8 / seconds,
            "cpu_per_gb": cpu / (received / 1e9),
            "lost_percent": lost,
            "limit": "",
        }

    return measure


def measurements(congestion):
    congestion_options, iperf3_congestion_options = (["--congestion", congestion], ["-C", congestion]) if congestion else ([], [])
    udp_options = ["-u", "-b", "0", "-l", "1448"]
    return {
        "TCP, 1 stream: neph": neph_measurement(congestion_options),
        "TCP, 1 stream: iperf3": iperf3_measurement(iperf3_congestion_options),
        "TCP, 1 stream: iperf3 -Z": iperf3_measurement([*iperf3_congestion_options, "-Z"]),
        "UDP, 1448 B: neph": neph_measurement(["--udp", "--rate", "max", "--size", "1448"]),
        "UDP, 1448 B: iperf3": iperf3_measurement(udp_options),
        "UDP, 1448 B: iperf3 -Z": iperf3_measurement([*udp_options, "-Z"]),
    }


def stolen_ticks():
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neph", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--congestion", default="cubic", help="of TCP; empty for the system's")
    parser.add_argument("--json")
    args = parser.parse_args()
    args.neph = os.path.abspath(args.neph)
    if not shutil.which("iperf3"):
        sys.exit("iperf3 is not installed (apt-get install iperf3)")
    measures = measurements(args.congestion)
    results = {name: [] for name in measures}
    stolen_before = stolen_ticks()
    create_namespaces()
    try:
        for _ in range(args.rounds):
            for name in random.sample(list(measures), len(measures)):
                results[name].append(measures[name](args))
    finally:
        delete_namespaces()
    print("| tool | Gbit/s, median | least, most | lost | CPU s per GB, both ends | against neph |")
    print("|---|---|---|---|---|---|")
    for name, rows in results.items():
        values = lambda key: [row[key] for row in rows]
        rate = statistics.median(values("bit_s"))
        neph_rows = results[name.split(":")[0] + ": neph"]
        ratio = statistics.median(
            result["bit_s"] / other["bit_s"] for result, other in zip(neph_rows, rows, strict=True)
        )
        print(
            f"| {name} | {rate / 1e9:.2f} | {min(values('bit_s')) / 1e9:.1f}, {max(values('bit_s')) / 1e9:.1f} "
            f"| {statistics.median(values('lost_percent')):.2f} % | {statistics.median(values('cpu_per_gb')):.3f} "
            f"| {'1' if ': neph' in name else f'neph {ratio:.2f} times'} |"
        )
    load = os.getloadavg()[0]
    print(f"\n{args.rounds} rounds of {args.seconds} s, TCP with {args.congestion or 'the system default'}; "
          f"load at the end {load:.1f}, {stolen_ticks() - stolen_before} ticks stolen")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
