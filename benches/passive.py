"""Packets per CPU second and peak memory of programs that read a capture for round trips.

    cargo build --release -p neph && cargo build --release -p neph-capture --examples
    python3 benches/passive.py --neph target/release/neph --traffic target/release/examples/traffic [--old OTHER]

Makes a capture of 20,000 simulated connections that overlap (several million packets, about 1 GB in
the temporary folder), reads it into the page cache, and runs each program on it in turn. CPU time is
user and system of the program; elapsed time is not told, since it says little on a shared machine.
tshark takes far longer and is given the first packets only; tcptrace and pping are run once, if they are installed. Also told: how many round trips by
acknowledgement each found. tshark's are a few more, since it counts retransmitted segments. With --old
another neph reads the same capture, the two in turn, so that what else the machine does meets both.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
TSHARK_PACKETS = 300_000


def run(command: list[str], out: pathlib.Path) -> tuple[float, int]:
    """CPU seconds and peak KiB of a program; what it prints goes into `out`."""
    with out.open("wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def run_repeatedly(command: list[str], out: pathlib.Path, rounds: int) -> tuple[float, int]:
    """Medians of several runs."""
    return median_use([run(command, out) for _ in range(rounds)])


def median_use(runs: list[tuple[float, int]]) -> tuple[float, int]:
    return statistics.median(cpu for cpu, _ in runs), max(memory for _, memory in runs)


def copy_first_packets(capture: pathlib.Path, packets: int, destination: pathlib.Path) -> int:
    """Writes the first packets of a capture; tells how many there were."""
    with capture.open("rb") as source, destination.open("wb") as file:
        file.write(source.read(24))
        for number in range(packets):
            record = source.read(16)
            if len(record) < 16:
                return number
            file.write(record + source.read(int.from_bytes(record[8:12], "little")))
    return packets


def neph_rows(programs: list[str], capture: pathlib.Path, out: pathlib.Path, rounds: int) -> list[dict]:
    """What each of these takes; they read in turn."""
    runs: dict[str, list] = {neph: [] for neph in programs}
    counts_by_program = {}
    for _ in range(rounds):
        for neph in programs:
            runs[neph].append(run([neph, "read", str(capture), "--format", "json"], out))
            counts_by_program[neph] = read_counts(out)
    return [
        {"program": f"{name} read", **counts_by_program[neph], **dict(zip(("cpu", "memory"), median_use(runs[neph])))}
        for name, neph in zip(("neph", "old neph"), programs)
    ]


def read_counts(out: pathlib.Path) -> dict:
    """Packets and round trips of a document of neph read."""
    # Flows stand before it: all of them, read here, would count as the next program's memory.
    with out.open("rb") as document:
        document.seek(-min(1 << 16, out.stat().st_size), os.SEEK_END)
        summary = json.loads(document.read().rpartition(b'"summary": ')[2].rstrip()[:-1])
    path = summary["round_trips"]
    round_trips = [answer["n"] for half in path.values() for key, answer in half["acknowledgement"].items()
             if answer and key != "path"]
    return {"packets": summary["packets"], "trips": sum(round_trips)}


def tshark_row(capture: pathlib.Path, packets: int, out: pathlib.Path) -> dict:
    fields = ["-T", "fields", "-e", "tcp.analysis.ack_rtt"]
    cpu, memory = run(["tshark", "-n", "-r", str(capture), *fields], out)
    with out.open() as lines:
        round_trips = sum(1 for line in lines if line.strip())
    return {"program": "tshark", "packets": packets, "cpu": cpu, "memory": memory, "trips": round_trips}


def tcptrace_row(capture: pathlib.Path, packets: int, out: pathlib.Path) -> dict:
    """Its samples are those of data and SYNs that were sent once, as it counts them itself."""
    cpu, memory = run(["tcptrace", "-nlr", str(capture)], out)
    fields = [line.split() for line in out.read_text(errors="replace").splitlines() if "RTT samples:" in line]
    round_trips = sum(int(line[2]) + int(line[5]) for line in fields)
    return {"program": "tcptrace", "packets": packets, "cpu": cpu, "memory": memory, "trips": round_trips}


def pping_row(capture: pathlib.Path, packets: int, out: pathlib.Path) -> dict:
    """By time stamps, a line each (github.com/pollere/pping; it has room for 10,000 flows unless changed)."""
    cpu, memory = run(["pping", "-r", str(capture)], out)
    with out.open("rb") as lines:
        round_trips = sum(1 for _ in lines)
    return {"program": "pping", "packets": packets, "cpu": cpu, "memory": memory, "trips": round_trips}


def loop_row(folder: pathlib.Path, capture: pathlib.Path, out: pathlib.Path, rounds: int) -> dict:
    program = folder / "passive_loop"
    subprocess.run(["cc", "-O2", "-o", program, HERE / "passive_loop.c"], check=True)
    cpu, memory = run_repeatedly([str(program), str(capture)], out, rounds)
    fields = out.read_text().split()
    return {"program": "plain C loop", "packets": int(fields[0]), "cpu": cpu, "memory": memory, "trips": int(fields[4])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--traffic", required=True, help="the example of neph-capture")
    parser.add_argument("--old", help="another neph, to be compared with")
    parser.add_argument("--connections", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        capture, first_packets_file, out = folder / "all.pcap", folder / "first.pcap", folder / "out"
        subprocess.run([options.traffic, str(options.connections), str(options.requests), capture], check=True)
        tshark_packets = copy_first_packets(capture, TSHARK_PACKETS, first_packets_file)
        loop_result = loop_row(folder, capture, out, options.rounds)
        rows = [
            loop_result,
            *neph_rows([options.neph, *filter(None, [options.old])], capture, out, options.rounds),
            {**neph_rows([options.neph], first_packets_file, out, 1)[0], "program": "neph read, first packets"},
            {**tshark_row(first_packets_file, tshark_packets, out), "program": "tshark, first packets"},
        ]
        if shutil.which("tcptrace"):
            rows.append(tcptrace_row(capture, loop_result["packets"], out))
        if shutil.which("pping"):
            rows.append(pping_row(capture, loop_result["packets"], out))
    print("| program | packets | CPU s | million packets per CPU s | peak MB | round trips |\n|---|---|---|---|---|---|")
    for row in rows:
        speed = row["packets"] / row["cpu"] / 1e6
        print(f"| {row['program']} | {row['packets']:,} | {row['cpu']:.2f} | {speed:.2f} "
              f"| {row['memory'] / 1024:.0f} | {row['trips']:,} |")
    print(f"\nload {os.getloadavg()[0]:.1f}; the plain loop's memory has the mapped file in it")


if __name__ == "__main__":
    main()
