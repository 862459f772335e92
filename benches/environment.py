"""The machine that a benchmark ran on, and its load: how far its figures can be trusted."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def _cpu_seconds() -> tuple[float, float]:
    """(all, stolen) CPU seconds since boot, over all cores."""
    tick_counts = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(tick_counts) / TICKS_PER_SECOND, tick_counts[7] / TICKS_PER_SECOND


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


@dataclass
class Environment:
    """The load of the machine; taken at the start of a run, compared at its end by `facts`."""

    start_unix: float
    load_before: float
    cpu_seconds_before: float
    stolen_seconds_before: float

    @classmethod
    def begin(cls) -> "Environment":
        """Takes the load now."""
        return cls(time.time(), os.getloadavg()[0], *_cpu_seconds())

    def facts(self) -> dict[str, str | int | float]:
        """The machine, and its load during the run."""
        cpu_seconds, stolen_seconds = _cpu_seconds()
        stolen_share = (stolen_seconds - self.stolen_seconds_before) / max(cpu_seconds - self.cpu_seconds_before, 0.01)
        clock_source_file = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        return {
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.start_unix)) + " UTC",
            "kernel": platform.release(),
            "processor": _processor(),
            "cores": os.cpu_count() or 0,
            "clock source": clock_source_file.read_text().strip() if clock_source_file.exists() else "unknown",
            "load average before": round(self.load_before, 2),
            "load average after": round(os.getloadavg()[0], 2),
            "CPU stolen, percent": round(100 * stolen_share, 2),
            "seconds": round(time.time() - self.start_unix),
        }


def sentence(facts: dict[str, str | int | float]) -> str:
    """The environment as one paragraph."""
    return "; ".join(f"{name}: {value}" for name, value in facts.items())
