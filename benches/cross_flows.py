"""Does `neph stress flow --capacity` tell how many other flows share a link?

    cargo build --release -p neph
    sudo python3 benches/cross_flows.py --neph target/release/neph

Brings up a lab of two sites with a link of 20 Mbit/s between them, sends 0, 1, 3 and 7 bulk flows over
it as fast as TCP goes, and beside them one more, for ten seconds (`--lasts`), which tells its own
throughput and how many others there are: floor(capacity / own) - 1. Needs root.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time

CAPACITY = "20Mbit/s"
LAB = f"""version = 1

[[site]]
name = "client"
address = "10.99.72.1/24"
congestion_control = "{{congestion}}"

[[site]]
name = "server"
address = "10.99.72.2/24"

[[link]]
a = "client"
b = "server"
delay = "10ms"
rate = "{CAPACITY}"
queue = "128KiB"
"""
SERVER = "10.99.72.2:8080"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neph", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--congestion", default="cubic")
    parser.add_argument("--lasts", type=int, default=10, help="seconds of the flow that tells")
    args = parser.parse_args()
    neph = str(args.neph.resolve())
    name = f"cross{os.getpid()}"
    with tempfile.TemporaryDirectory() as folder:
        topology = pathlib.Path(folder) / "lab.toml"
        topology.write_text(LAB.format(congestion=args.congestion))
        subprocess.run([neph, "lab", "up", str(topology), "--detach", "--name", name], check=True)
        try:
            measure(neph, name, args.rounds, args.lasts)
        finally:
            subprocess.run([neph, "lab", "down", name], check=True)


def measure(neph: str, name: str, rounds: int, duration_s: int) -> None:
    def start_neph(site: str, *arguments: str) -> subprocess.Popen:
        command = [neph, "lab", "run", site, "--lab", name, "--", neph, *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)

    reflector = start_neph("server", "reflect", "--listen", SERVER)
    reflector.stderr.readline()
    flow_command = ["stress", "flow", SERVER, "--rate", "max"]
    try:
        for cross_flow_count in [0, 1, 3, 7]:
            for _ in range(rounds):
                cross_options = ["--flows", str(cross_flow_count), "-w", f"{duration_s + 4}s"]
                cross_traffic = start_neph("client", *flow_command, *cross_options) if cross_flow_count else None
                # What began first has settled by then.
                time.sleep(3)
                measured_flow = start_neph("client", *flow_command, "--capacity", CAPACITY, "-w", f"{duration_s}s", "--format", "json")
                stdout, stderr = measured_flow.communicate()
                rate = json.loads(stdout)[0]["received_bit_s"]
                count = re.search(r": (\d+)$", stderr.strip())
                count = count.group(1) if count else stderr.strip()
                print(f"{cross_flow_count} cross flows: own {rate / 1e6:.2f} Mbit/s, told {count}", flush=True)
                if cross_traffic:
                    cross_traffic.communicate()
    finally:
        reflector.terminate()
        reflector.wait()


if __name__ == "__main__":
    main()
