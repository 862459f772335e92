#!/usr/bin/env python3
"""Rates and response times of neph load against a service whose truth is known.

    cargo build --release -p neph
    python3 benches/load_truth.py --neph target/release/neph [--levels 20] [--seconds 8]

The service is `neph reflect --serve`: c servers, a distribution of service times with a mean of 5 ms, a queue
without limit or with a few places. The truth is a simulation of the same model in this file, which shares no code
with neph; for exponential service times without limit it is itself held against the formula of M/M/c//N. Workers
think for exponential times of 5 ms. A rate or a response time that is off by more than 5 % is a fault; the exit
status is 1 then.
"""

import argparse
import heapq
import json
import math
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SERVICE_S = 0.005
THINK_S = 0.005
TOLERANCE = 0.05


@dataclass(frozen=True)
class Service:
    """A distribution of service times: as neph writes it, and as Python draws it."""

    text: str
    draw: Callable[[random.Random], float]


def lognormal(generator: random.Random) -> float:
    """Mean 5 ms, standard deviation 5 ms."""
    variance = math.log(2.0)
    return generator.lognormvariate(math.log(SERVICE_S) - variance / 2, math.sqrt(variance))


SERVICES = {
    "exponential": Service("exp 5ms", lambda generator: generator.expovariate(1 / SERVICE_S)),
    "constant": Service("5ms", lambda _: SERVICE_S),
    "lognormal": Service("lognormal 5ms sd=5ms", lognormal),
}


@dataclass(frozen=True)
class Result:
    """Successful responses per second, and their mean response time in seconds."""

    rate: float
    response: float


def simulate(service: Service, servers: int, places: int | None, workers: int, cycles: int = 150_000) -> Result:
    """A closed loop: think, wait, be served. A worker that finds no place thinks again."""
    generator = random.Random(workers * 1_000 + servers)
    # Events: the time, a number that orders equal times, the worker, and whether it arrives or is served.
    events: list[tuple[float, int, int, bool]] = []
    number = 0

    def push(at: float, worker: int, arrives: bool) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (at, number, worker, arrives))

    for worker in range(workers):
        push(generator.expovariate(1 / THINK_S), worker, True)
    busy, waiting, since = 0, [], [0.0] * workers
    done, total, started = 0, 0.0, 0.0
    now = 0.0
    while done < cycles:
        now, _, worker, arrives = heapq.heappop(events)
        if arrives:
            since[worker] = now
            if busy < servers:
                busy += 1
                push(now + service.draw(generator), worker, False)
            elif places is None or len(waiting) < places:
                waiting.append(worker)
            else:
                push(now + generator.expovariate(1 / THINK_S), worker, True)
            continue
        done += 1
        # The first tenth is the warm-up.
        if done == cycles // 10:
            started, total = now, 0.0
        total += now - since[worker]
        push(now + generator.expovariate(1 / THINK_S), worker, True)
        if waiting:
            push(now + service.draw(generator), waiting.pop(0), False)
        else:
            busy -= 1
    counted = cycles - cycles // 10
    return Result(counted / (now - started), total / counted)


def formula(servers: int, workers: int) -> float:
    """The rate of M/M/c//N."""
    weights = [1.0]
    for requests in range(1, workers + 1):
        arrivals = (workers - requests + 1) / THINK_S
        weights.append(weights[-1] * arrivals * SERVICE_S / min(requests, servers))
    rates = [min(requests, servers) / SERVICE_S for requests in range(workers + 1)]
    return sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / sum(weights)


def free_port() -> int:
    """A port that nothing uses now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def measure(neph: str, port: int, workers: int, seconds: float) -> tuple[Result, dict]:
    """One level."""
    command = [neph, "load", f"http://127.0.0.1:{port}/", "--workers", str(workers), "--think", "exp 5ms"]
    command += ["-w", f"{seconds + 1}s", "--warmup", "1s", "--format", "json"]
    document = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Result(document["responses_per_s"], document["response_time"]["mean_ns"] / 1e9), document


def levels_of(servers: int, count: int) -> list[int]:
    """Numbers of workers up to four times the knee, at equal distances."""
    top = 8 * servers
    return sorted({max(1, round(top * (index + 1) / count)) for index in range(count)})


def check(neph: str, name: str, servers: int, places: int | None, args: argparse.Namespace) -> int:
    """All levels of a service; returns the number of faults."""
    port = free_port()
    limit = "" if places is None else f" queue={places}"
    model = f"c={servers} {SERVICES[name].text}{limit} port={port}"
    serve = [neph, "reflect", "--listen", f"127.0.0.1:{free_port()}", "--serve", model, "--quiet"]
    server = subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    faults, worst = 0, (0.0, 0.0)
    try:
        time.sleep(0.5)
        for workers in levels_of(servers, args.levels):
            truth = simulate(SERVICES[name], servers, places, workers)
            if name == "exponential" and places is None:
                assert abs(truth.rate / formula(servers, workers) - 1) < 0.01
            measured, document = measure(neph, port, workers, args.seconds)
            off = (measured.rate / truth.rate - 1, measured.response / truth.response - 1)
            worst = tuple(max(known, abs(one)) for known, one in zip(worst, off, strict=True))
            is_fault = max(map(abs, off)) > TOLERANCE
            faults += is_fault
            if is_fault or args.verbose:
                law = document["workers_by_little"]
                print(f"  {workers} workers: rate {off[0]:+.1%}, response time {off[1]:+.1%}, Little {law}")
    finally:
        server.terminate()
        server.wait()
    queue = "no limit" if places is None else f"{places} places"
    print(f"c={servers} {name}, {queue}: largest error of the rate {worst[0]:.1%}, of the response time {worst[1]:.1%}")
    return faults


def main() -> None:
    """Prints a line for each service."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--neph", required=True)
    parser.add_argument("--levels", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--servers", type=int, nargs="*", default=[1, 2, 8])
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    neph = str(Path(args.neph).resolve())
    faults = 0
    for servers in args.servers:
        for name in SERVICES:
            for places in (None, 2 * servers):
                faults += check(neph, name, servers, places, args)
    print(f"{faults} levels off by more than {TOLERANCE:.0%}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
