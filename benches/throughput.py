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

HERE, THERE = f"nephtp{os.getpid()}a", f"nephtp{os.getpid()}b"
ADDRESS = "10.97.0.2"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def up():
    for name in (HERE, THERE):
        ip("netns", "add", name)
    ip("link", "add", "tp0", "netns", HERE, "type", "veth", "peer", "name", "tp1", "netns", THERE)
    for name, interface, address in ((HERE, "tp0", "10.97.0.1"), (THERE, "tp1", ADDRESS)):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", interface)
        ip("-n", name, "link", "set", "lo", "up")
        ip("-n", name, "link", "set", interface, "up")


def down():
    for name in (HERE, THERE):
        subprocess.run(["ip", "netns", "del", name], check=False)


def inside(name, *words):
    return ["nsenter", f"--net=/run/netns/{name}", *words]


def cpu_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(server, client, seconds):
    """The client's output, and the CPU time of both ends together."""
    before = cpu_of_children()
    serving = subprocess.Popen(inside(THERE, *server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            listening = subprocess.run(inside(THERE, "ss", "-Hltn"), capture_output=True, text=True).stdout
            if ":7420" in listening or ":5201" in listening:
                break
            time.sleep(0.05)
        ran = subprocess.run(inside(HERE, *client), capture_output=True, text=True, timeout=seconds + 60)
    finally:
        serving.terminate()
        serving.wait()
    if ran.returncode:
        sys.exit(f"{' '.join(client)}: {ran.stdout[-500:]} {ran.stderr[-500:]}")
    return json.loads(ran.stdout), cpu_of_children() - before


def neph(options):
    def measure(args):
        client = [args.neph, "throughput", ADDRESS, *options, "-w", f"{args.seconds}s", "--format", "json"]
        printed, cpu = run([args.neph, "throughput", "serve"], client, args.seconds)
        [one] = printed["directions"]
        return {
            "bit_s": one["goodput_bit_s"],
            "cpu_per_gb": cpu / (one["received_bytes"] / 1e9),
            "lost_percent": (one["udp"] or {}).get("lost_percent", 0.0),
            "limit": one["limit"],
        }

    return measure


def iperf3(options):
    def measure(args):
        client = ["iperf3", "-J", "-c", ADDRESS, "-t", str(args.seconds), *options]
        printed, cpu = run(["iperf3", "-s"], client, args.seconds)
        end = printed["end"]
        # Of UDP `sum` has what the client sent, and what the server counted as lost.
        if "-u" in options:
            received = end["sum"]["bytes"] * (1 - end["sum"]["lost_percent"] / 100)
            lost = end["sum"]["lost_percent"]
            seconds = end["sum"]["seconds"]
        else:
            received, lost = end["sum_received"]["bytes"], 0.0
            seconds = end["sum_received"]["seconds"]
        return {
            "bit_s": received * 8 / seconds,
            "cpu_per_gb": cpu / (received / 1e9),
            "lost_percent": lost,
            "limit": "",
        }

    return measure


def tools(congestion):
    chosen, chosen_iperf = (["--congestion", congestion], ["-C", congestion]) if congestion else ([], [])
    udp = ["-u", "-b", "0", "-l", "1448"]
    return {
        "TCP, 1 stream: neph": neph(chosen),
        "TCP, 1 stream: iperf3": iperf3(chosen_iperf),
        "TCP, 1 stream: iperf3 -Z": iperf3([*chosen_iperf, "-Z"]),
        "UDP, 1448 B: neph": neph(["--udp", "--rate", "max", "--size", "1448"]),
        "UDP, 1448 B: iperf3": iperf3(udp),
        "UDP, 1448 B: iperf3 -Z": iperf3([*udp, "-Z"]),
    }


def steal():
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
    measures = tools(args.congestion)
    results = {name: [] for name in measures}
    before = steal()
    up()
    try:
        for _ in range(args.rounds):
            for name in random.sample(list(measures), len(measures)):
                results[name].append(measures[name](args))
    finally:
        down()
    print("| tool | Gbit/s, median | least, most | lost | CPU s per GB, both ends | against neph |")
    print("|---|---|---|---|---|---|")
    for name, rows in results.items():
        of = lambda key: [row[key] for row in rows]
        rate = statistics.median(of("bit_s"))
        own = results[name.split(":")[0] + ": neph"]
        ratio = statistics.median(
            one["bit_s"] / other["bit_s"] for one, other in zip(own, rows, strict=True)
        )
        print(
            f"| {name} | {rate / 1e9:.2f} | {min(of('bit_s')) / 1e9:.1f}, {max(of('bit_s')) / 1e9:.1f} "
            f"| {statistics.median(of('lost_percent')):.2f} % | {statistics.median(of('cpu_per_gb')):.3f} "
            f"| {'1' if ': neph' in name else f'neph {ratio:.2f} times'} |"
        )
    load = os.getloadavg()[0]
    print(f"\n{args.rounds} rounds of {args.seconds} s, TCP with {args.congestion or 'the system default'}; "
          f"load at the end {load:.1f}, {steal() - before} ticks stolen")
    if args.json:
        with open(args.json, "w") as out:
            json.dump(results, out, indent=1)


if __name__ == "__main__":
    main()
