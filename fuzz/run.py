"""Runs fuzz targets until each has had a number of executions, and goes on where it was ended.

    python3 fuzz/run.py --executions 100000000                  # every target; Ctrl-C ends it at any time
    python3 fuzz/run.py --executions 100000000 --at-most 3600 capture dissect
    python3 fuzz/run.py --keep                                   # what was found since, into corpus/

Targets are taken by turns of a minute each, the one that ran the shortest first, at the lowest
priority. Inputs are short; each tenth turn of a target they may be long. How often each has run is
kept in fuzz/executions.json. What a target finds lies in fuzz/target/grown/TARGET until --keep takes
into corpus/TARGET what covers more than is covered there. An input that crashes ends it, and lies in
fuzz/artifacts/TARGET.

The programs are those that `cargo +nightly fuzz build` made (CFLAGS=-O0 saves minutes); by
`-s none --no-trace-compares` they run several times as often, see fuzz/README.md.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
COUNTS = HERE / "executions.json"
# Bytes of an input at most: nearly all that a parser can do wrong shows in few, which take little time.
MAX_INPUT_BYTES = 512
# Bytes in each tenth turn, for what only shows in many; and where those must be very many.
LONG_INPUT_BYTES = 4_096
LONG_INPUT_BYTES_OF_TARGET = {"hops": 16_384, "memory": 65_536}
# The allocator keeps what was freed: otherwise each execution asks the kernel for its buffers anew.
ALLOCATOR_ENVIRONMENT = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}


def read_counts() -> dict:
    return json.loads(COUNTS.read_text()) if COUNTS.exists() else {}


def add_turn(target: str, executions: int, seconds: int) -> None:
    """What a turn did; written at once and as a whole, so that an interruption loses at most a turn."""
    all_counts = read_counts()
    entry = all_counts.setdefault(target, {"executions": 0, "seconds": 0})
    entry["executions"] += executions
    entry["seconds"] += seconds
    entry["turns"] = entry.get("turns", 0) + 1
    temporary_file = COUNTS.with_suffix(".new")
    temporary_file.write_text(json.dumps(dict(sorted(all_counts.items())), indent=1) + "\n")
    temporary_file.replace(COUNTS)


def program_path(folder: pathlib.Path, target: str) -> str:
    path = folder / target
    if not path.exists():
        raise SystemExit(f"{path} is missing: build it with CFLAGS=-O0 cargo +nightly fuzz build")
    return str(path)


def folders(target: str) -> tuple[str, str]:
    grown, corpus = HERE / "target" / "grown" / target, HERE / "corpus" / target
    for folder in (grown, corpus):
        folder.mkdir(parents=True, exist_ok=True)
    return str(grown), str(corpus)


def run_turn(programs: pathlib.Path, target: str, seconds: int, remaining_runs: int) -> None:
    artifacts = HERE / "artifacts" / target
    artifacts.mkdir(parents=True, exist_ok=True)
    command = [
        "nice", "-n", "19", program_path(programs, target), *folders(target),
        f"-max_total_time={seconds}", f"-runs={remaining_runs}", "-print_final_stats=1",
        "-rss_limit_mb=1024", "-timeout=10", f"-artifact_prefix={artifacts}/",
    ]
    is_long = read_counts().get(target, {}).get("turns", 0) % 10 == 9
    command.append(f"-max_len={LONG_INPUT_BYTES_OF_TARGET.get(target, LONG_INPUT_BYTES) if is_long else MAX_INPUT_BYTES}")
    dictionary = HERE / "dictionaries" / f"{target}.dict"
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    started = time.monotonic()
    finished = subprocess.run(command, env=os.environ | ALLOCATOR_ENVIRONMENT, stderr=subprocess.PIPE, text=True, errors="replace")
    executions = re.search(r"stat::number_of_executed_units: (\d+)", finished.stderr)
    add_turn(target, int(executions.group(1)) if executions else 0, round(time.monotonic() - started))
    if finished.returncode != 0:
        print(finished.stderr[-4_000:])
        raise SystemExit(f"{target} failed: see {artifacts}")
    coverage = re.findall(r"cov: (\d+) ft: (\d+)", finished.stderr)
    entry = read_counts()[target]
    print(f"{target}: {entry['executions']:,} executions in {entry['seconds']} s; "
          f"edges and features {' '.join(coverage[-1]) if coverage else 'not told'}", flush=True)


def keep_new_inputs(programs: pathlib.Path, target: str) -> None:
    grown, corpus = folders(target)
    before = len(list(pathlib.Path(corpus).iterdir()))
    subprocess.run([program_path(programs, target), "-merge=1", "-rss_limit_mb=1024", corpus, grown],
                   check=True, stderr=subprocess.DEVNULL)
    print(f"{target}: {len(list(pathlib.Path(corpus).iterdir())) - before} inputs more in corpus/{target}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="all that are in Cargo.toml, if none is named")
    parser.add_argument("--executions", type=int, help="until each target has had so many")
    parser.add_argument("--at-most", type=float, default=float("inf"), metavar="SECONDS", help="end after these")
    parser.add_argument("--turn", type=int, default=60, metavar="SECONDS")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--programs", type=pathlib.Path, help="where they were built",
                        default=HERE / "target" / "x86_64-unknown-linux-gnu" / "release")
    options = parser.parse_args()
    if (options.executions is None) != options.keep:
        parser.error("give --executions N, or --keep")
    known_targets = re.findall(r'^\[\[bin\]\]\nname = "(\w+)"', (HERE / "Cargo.toml").read_text(), re.MULTILINE)
    targets = options.targets or known_targets
    if unknown := set(targets) - set(known_targets):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if options.keep:
        for target in targets:
            keep_new_inputs(options.programs, target)
        return
    end = time.monotonic() + options.at_most
    while time.monotonic() < end:
        all_counts = read_counts()
        remaining_runs = {target: options.executions - all_counts.get(target, {}).get("executions", 0) for target in targets}
        unfinished = [target for target in targets if remaining_runs[target] > 0]
        if not unfinished:
            break
        target = min(unfinished, key=lambda target_name: all_counts.get(target_name, {}).get("seconds", 0))
        run_turn(options.programs, target, max(1, int(min(options.turn, end - time.monotonic()))), remaining_runs[target])


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("ended; what was run until the last turn stands in executions.json")
