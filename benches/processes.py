"""Servers that run while a benchmark lasts, and tools that are run and whose CPU use is told.

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

PATIENCE = 5.0


@dataclass(frozen=True)
class Ran:
    """A finished program: what it printed, and what it used."""

    output: str
    errors: str
    status: int
    seconds: float
    cpu_seconds: float


def _inside(namespace: str, command: Sequence[str]) -> list[str]:
    # nsenter replaces itself by the program: the process id and the CPU time are the program's.
    return ["nsenter", f"--net=/run/netns/{namespace}", *command]


def run(
    namespace: str, command: Sequence[str], folder: Path, limit: float, *, stop_at_limit: bool = False
) -> Ran:
    """Runs a program in the namespace, at most `limit` seconds.

    `stop_at_limit` is for programs that know no end: at the limit they are asked to end, and that
    is no failure. Otherwise reaching the limit raises RuntimeError.
    """
    files = (folder / "stdout", folder / "stderr")
    with files[0].open("wb") as out, files[1].open("wb") as err:
        began = time.monotonic()
        child = subprocess.Popen(
            _inside(namespace, command), stdin=subprocess.DEVNULL, stdout=out, stderr=err
        )
        status, seconds, cpu = _wait(child, began + limit, stop_at_limit, command[0])
    output, errors = (file.read_text(errors="replace") for file in files)
    return Ran(output, errors, status, seconds, cpu)


def _wait(
    child: subprocess.Popen[bytes], deadline: float, stop_at_limit: bool, name: str
) -> tuple[int, float, float]:
    began = time.monotonic()
    asked = False
    while True:
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        now = time.monotonic()
        if pid:
            break
        if now > deadline:
            child.send_signal(signal.SIGKILL if asked else signal.SIGINT)
            asked, deadline = True, now + PATIENCE
        # Rarely: looking must not disturb what is measured.
        time.sleep(0.1)
    child.returncode = os.waitstatus_to_exitcode(status)
    if asked and not stop_at_limit:
        raise RuntimeError(f"{name} did not end in time")
    return child.returncode, now - began, used.ru_utime + used.ru_stime


@contextmanager
def server(namespace: str, command: Sequence[str]) -> Iterator[None]:
    """A server in the namespace for as long as the block lasts."""
    child = subprocess.Popen(
        _inside(namespace, command),
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
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
