"""Runs servers for the duration of a benchmark, and tools whose CPU time is measured.

Everything is started by exact command and ended by its process id.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STOP_TIMEOUT_S = 5.0


@dataclass(frozen=True)
class FinishedProcess:
    """A finished program: what it printed, and what it used."""

    output: str
    errors: str
    status: int
    seconds: float
    cpu_seconds: float


def _nsenter(namespace: str, command: Sequence[str]) -> list[str]:
    # nsenter replaces itself by the program: the process id and the CPU time are the program's.
    return ["nsenter", f"--net=/run/netns/{namespace}", *command]


def run(
    namespace: str, command: Sequence[str], folder: Path, limit: float, *, stop_at_limit: bool = False
) -> FinishedProcess:
    """Runs a program in the namespace, at most `limit` seconds.

    `stop_at_limit` is for programs that run until they are stopped: at the limit they get SIGINT, and
    that is no failure. Otherwise reaching the limit raises RuntimeError.
    """
    files = (folder / "stdout", folder / "stderr")
    with files[0].open("wb") as out, files[1].open("wb") as err:
        started = time.monotonic()
        child = subprocess.Popen(
            _nsenter(namespace, command), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        status, seconds, cpu_seconds = _wait(child, started + limit, stop_at_limit, command[0])
    output, errors = (file.read_text(errors="replace") for file in files)
    return FinishedProcess(output, errors, status, seconds, cpu_seconds)


def _wait(
    child: subprocess.Popen[bytes], deadline: float, stop_at_limit: bool, name: str
) -> tuple[int, float, float]:
    started = time.monotonic()
    stop_sent = False
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        now = time.monotonic()
        if pid:
            break
        if now > deadline:
            child.send_signal(signal.SIGKILL if stop_sent else signal.SIGINT)
            stop_sent, deadline = True, now + STOP_TIMEOUT_S
        # Rarely: looking must not disturb what is measured.
        time.sleep(0.1)
    child.returncode = os.waitstatus_to_exitcode(status)
    if stop_sent and not stop_at_limit:
        raise RuntimeError(f"{name} did not end in time")
    return child.returncode, now - started, usage.ru_utime + usage.ru_stime


@contextmanager
def server(namespace: str, command: Sequence[str]) -> Iterator[None]:
    """A server in the namespace for as long as the block lasts."""
    child = subprocess.Popen(
        _nsenter(namespace, command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        if child.poll() is not None:
            raise RuntimeError(f"{' '.join(command)} ended with status {child.returncode}")
        yield
    finally:
        child.terminate()
        try:
            child.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
