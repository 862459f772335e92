"""How much memory the programs of a namespace take while they run."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Rarely: looking walks over all mappings of every process.
SAMPLE_INTERVAL_S = 0.5


class MemoryUse:
    """Largest proportional set size that was seen, bytes: shared pages count once."""

    max_bytes = 0


def _process_bytes(process: str) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def _processes_in(namespace: str) -> Iterator[str]:
    namespace_inode = os.stat(f"/run/netns/{namespace}").st_ino
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}/ns/net").st_ino == namespace_inode:
                yield entry
        except OSError:
            continue


@contextmanager
def watch_memory(namespace: str) -> Iterator[MemoryUse]:
    """Looks at the namespace's programs for as long as the block lasts."""
    memory, stopped = MemoryUse(), threading.Event()

    def sample() -> None:
        while not stopped.wait(SAMPLE_INTERVAL_S):
            memory.max_bytes = max(memory.max_bytes, sum(_process_bytes(process) for process in _processes_in(namespace)))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield memory
    finally:
        stopped.set()
        thread.join()
