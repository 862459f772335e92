"""Where and how quietly a benchmark ran: what is needed to doubt its figures."""

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def _cpu_seconds() -> tuple[float, float]:
    """(all, stolen) CPU seconds since boot, over all cores."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields) / TICKS_PER_SECOND, fields[7] / TICKS_PER_SECOND


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


@dataclass
class Environment:
    """Begins with the run; `tell` ends it."""

    began: float
    load_before: float
    all_before: float
    stolen_before: float

    @classmethod
    def begin(cls) -> "Environment":
        """Now."""
        return cls(time.time(), os.getloadavg()[0], *_cpu_seconds())

    def tell(self) -> dict[str, str | int | float]:
        """The machine, and what else it did meanwhile."""
        spent, stolen = _cpu_seconds()
        share = (stolen - self.stolen_before) / max(spent - self.all_before, 0.01)
        clock = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
        return {
            "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.began)) + " UTC",
            "kernel": platform.release(),
            "processor": _processor(),
            "cores": os.cpu_count() or 0,
            "clock source": clock.read_text().strip() if clock.exists() else "unknown",
            "load average before": round(self.load_before, 2),
            "load average after": round(os.getloadavg()[0], 2),
            "CPU stolen, percent": round(100 * share, 2),
            "seconds": round(time.time() - self.began),
        }


def sentence(told: dict[str, str | int | float]) -> str:
    """The environment as one paragraph."""
    return "; ".join(f"{name}: {value}" for name, value in told.items())
