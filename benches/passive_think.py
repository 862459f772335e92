"""Does a server's thinking move the path that `neph read` tells?

    cargo build --release -p neph
    sudo python3 benches/passive_think.py --neph target/release/neph

Brings up a lab of two sites with a link between them, lets a server think for 0, 20, 35 and 60 ms
before each answer, captures at the client with tcpdump, and reads the capture. At 60 ms the server's
host acknowledges before its program answers. Told: path, response, and their difference, which should
be the thinking; and how far the path moved. Needs root, tcpdump and ethtool.
"""

import argparse
import json
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

LAB = """version = 1

[[site]]
name = "client"
address = "10.99.71.1/24"

[[site]]
name = "server"
address = "10.99.71.2/24"

[[link]]
a = "client"
b = "server"
delay = "{delay}ms"
"""
SERVER, PORT = "10.99.71.2", 7171
REQUEST, ANSWER = 200, 2_000


def serve(server_delay: float) -> None:
    """Answers one connection after the other; runs within the lab."""
    listener = socket.create_server((SERVER, PORT))
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while receive_all(connection, REQUEST):
            time.sleep(server_delay)
            connection.sendall(bytes(ANSWER))


def receive_all(connection: socket.socket, byte_count: int) -> bool:
    while byte_count > 0:
        received_bytes = len(connection.recv(byte_count))
        if received_bytes == 0:
            return False
        byte_count -= received_bytes
    return True


def send_requests(connections: int, requests: int) -> None:
    """The client; runs within the lab."""
    for _ in range(connections):
        with socket.create_connection((SERVER, PORT)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(requests):
                connection.sendall(bytes(REQUEST))
                receive_all(connection, ANSWER)


def lab_command(neph: str, site: str, *command: str) -> list[str]:
    return [neph, "lab", "run", "--lab", "capthink", site, "--", *command]


def capture_traffic(options: argparse.Namespace, server_delay: int, capture: pathlib.Path) -> None:
    def own_command(site: str, *arguments: str) -> list[str]:
        return lab_command(options.neph, site, sys.executable, __file__, "--neph", options.neph, *arguments)

    tcpdump_command = lab_command(options.neph, "client", "tcpdump", "-i", "any", "-U", "-s", "128", "-w", str(capture), "tcp port 7171")
    server = subprocess.Popen(own_command("server", "--serve", str(server_delay / 1_000)), stdout=subprocess.PIPE)
    tcpdump = subprocess.Popen(tcpdump_command, stderr=subprocess.PIPE)
    try:
        server.stdout.readline()
        tcpdump.stderr.readline()
        time.sleep(0.5)
        subprocess.run(own_command("client", "--ask", str(options.connections), str(options.requests)), check=True)
        time.sleep(0.5)
    finally:
        tcpdump.send_signal(signal.SIGINT)
        tcpdump.wait()
        server.kill()
        server.wait()


def row(options: argparse.Namespace, capture: pathlib.Path) -> dict:
    read = subprocess.run([options.neph, "read", str(capture), "--format", "json"], check=True, capture_output=True)
    server = json.loads(read.stdout)["summary"]["round_trips"]["server"]
    return {"path": server["acknowledgement"]["path"], "echo": server["echo"]["path"], "response": server["response"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--neph", required=True)
    parser.add_argument("--delay", type=int, default=10, help="of the link in ms, each way")
    parser.add_argument("--connections", type=int, default=20)
    parser.add_argument("--requests", type=int, default=10, help="of each connection")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder that the captures are left in")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--ask", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.neph = str(pathlib.Path(options.neph).resolve())
    if options.serve is not None:
        return serve(options.serve)
    if options.ask is not None:
        return send_requests(*options.ask)
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or pathlib.Path(name)
        topology = folder / "capthink.toml"
        topology.write_text(LAB.format(delay=options.delay))
        subprocess.run([options.neph, "lab", "up", str(topology), "--detach"], check=True)
        try:
            rows = []
            for server_delay in (0, 20, 35, 60):
                capture = folder / f"{server_delay}.pcap"
                capture_traffic(options, server_delay, capture)
                rows.append((server_delay, row(options, capture)))
        finally:
            subprocess.run([options.neph, "lab", "down", "capthink"], check=True)
    print_table(rows)


def print_table(rows: list[tuple[int, dict]]) -> None:
    print("| thinking ms | path p50 ms | n | moved % | path by echo | response p50 ms | n | response - path |")
    print("|---|---|---|---|---|---|---|---|")
    first = rows[0][1]["path"]["p50_ns"]
    for server_delay, round_trips in rows:
        path, echo, response = round_trips["path"], round_trips["echo"], round_trips["response"]
        change_percent = (path["p50_ns"] / first - 1) * 100
        print(f"| {server_delay} | {path['p50_ns'] / 1e6:.3f} | {path['n']} | {change_percent:+.1f} | {echo['p50_ns'] / 1e6:.3f} "
              f"| {response['p50_ns'] / 1e6:.3f} | {response['n']} | {(response['p50_ns'] - path['p50_ns']) / 1e6:.3f} |")


if __name__ == "__main__":
    main()
