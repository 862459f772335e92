"""How much memory the programs of a namespace take while they run."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Rarely: looking walks over all mappings of every process.
EVERY = 0.5


class Watch:
    """The most that was seen, bytes: proportional set size, so that shared pages count once."""

    most = 0


def _of(process: str) -> int:
    try:
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    for line in text.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def _inside(namespace: str) -> Iterator[str]:
    wanted = os.stat(f"/run/netns/{namespace}").st_ino
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and os.stat(f"/proc/{entry}/ns/net").st_ino == wanted:
                yield entry
        except OSError:
            continue


@contextmanager
def watched(namespace: str) -> Iterator[Watch]:
    """Looks at the namespace's programs for as long as the block lasts."""
    watch, done = Watch(), threading.Event()

    def look() -> None:
        while not done.wait(EVERY):
            watch.most = max(watch.most, sum(_of(process) for process in _inside(namespace)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield watch
    finally:
        done.set()
        thread.join()
