"""A lab that is up for as long as a block lasts, with its record, and neph at its sites."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

OUTPUT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Lab:
    """Its name, and where its links write what they did."""

    name: str
    record: Path

    def namespace(self, site: str) -> str:
        """The network namespace of a site."""
        return f"neph-{self.name}-{site}"


@contextmanager
def lab(neph: str, topology: Path, name: str, record: Path) -> Iterator[Lab]:
    """Brings it up with a record; the record is whole once the block is over."""
    command = [neph, "lab", "up", str(topology), "--name", name, "--record", str(record), "--detach"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    try:
        yield Lab(name, record)
    finally:
        down = [neph, "lab", "down", name]
        subprocess.run(down, check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Line:
    """A document that a program wrote, and when it did: nanoseconds of the wall clock."""

    written_ns: int
    document: dict


def run_json_lines(command: Sequence[str], limit: float) -> list[Line]:
    """Runs a program that writes a JSON document a line; at most `limit` seconds and OUTPUT_TIMEOUT_S."""
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    try:
        output_lines = [(time.time_ns(), line) for line in child.stdout]
        _, errors = child.communicate(timeout=limit + OUTPUT_TIMEOUT_S)
    except BaseException:
        child.kill()
        child.wait()
        raise
    if child.returncode != 0:
        raise RuntimeError(f"{command[1]} ended with {child.returncode}: {errors[-500:]}")
    return [Line(written_ns, json.loads(line)) for written_ns, line in output_lines]


def run_json(command: Sequence[str], limit: float) -> dict:
    """The one JSON document that a program writes."""
    finished = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {finished.returncode}: {finished.stderr[-500:]}")
    return json.loads(finished.stdout)
