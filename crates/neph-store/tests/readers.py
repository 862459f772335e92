"""Runs the readings that docs/schema.md shows and checks what they read.

Usage: readers.py docs/schema.md WORKSPACE EXPERIMENT. Ends with 77 if a library is missing.
The workspace holds one experiment of 1000 messages; message n took 46,700 + n ns, and has no
queued_ns (see message() in tests/values/mod.rs). It has a fleet of 1000 messages too.
"""

import os
import re
import sys

try:
    import duckdb
    import pandas
    import pyarrow.parquet
except ImportError as error:
    print(error)
    sys.exit(77)

page, workspace, experiment = sys.argv[1:]
blocks = re.findall(r"```python\n(.*?)```", open(page, encoding="utf-8").read(), re.S)
assert len(blocks) == 4, f"the page shows {len(blocks)} readings"
os.chdir(workspace)
names = {"experiment_id": experiment}
for block in blocks:
    code = [line for line in block.splitlines() if not line.startswith("import ")]
    assert len(code) == 2, f"a reading has {len(code)} lines: {block}"
    exec(block, names)

rows = names["summary"].fetchall()
assert len(rows) == 1, rows
name, count, median_ms = rows[0]
assert name.endswith(f"{experiment}.parquet"), name
assert count == 1000, count
assert abs(median_ms - 0.0471995) < 1e-9, median_ms

messages = names["messages"]
took = messages.app_recv_ns - messages.app_send_ns
assert list(took) == [46_700 + n for n in range(1000)]
assert list(messages.seq) == list(range(1000))
assert set(messages.outcome) == {"reply"}
assert messages.queued_ns.isna().all()
assert messages.tcp_send_ssthresh_segments.max() == 4294967295
assert int(messages.tcp_send_delivery_rate_bytes_per_s.max()) == 2**64 - 1
assert messages.peer_rx_ns.iloc[0] == -7_000_000_000
assert messages.reordered.sum() == 500

flows = names["flows"].fetchall()
assert len(flows) == 8, flows
assert flows[0][:3] == (0, 65535, 100), flows[0]
# The replies of lane 0 are messages 0, 16, 24, 32, 40, 56 ...: none with a time at the peer.
lane = sorted(800_000 + n for n in range(0, 1000, 8) if n % 10 != 8)
assert abs(flows[0][3] - (lane[49] + lane[50]) / 2e6) < 1e-12, flows[0]
assert len(names["slowest"].fetchall()) == 8
fleet = names["fleet"]
assert list(fleet.sent_ns) == [n * 25_000_000 for n in range(1000)]
assert (fleet.outcome == "lost").sum() == 100 == names["lost"].sum()
assert fleet.peer_rx_ns.dropna().iloc[0] == -2**63 + 1
assert fleet.peer_count.dropna().max() == 2**32 - 1
assert fleet.round_trip_ns.isna().sum() == 200

experiments = names["experiments"]
assert list(experiments.id) == [experiment]
assert list(experiments.status) == ["complete"]

facts = pyarrow.parquet.read_metadata(f"messages/{experiment}.parquet").metadata
assert facts[b"nephoscope.experiment_id"].decode() == experiment
assert facts[b"nephoscope.schema_version"] == b"1"
assert facts[b"nephoscope.started_unix_ns"] == b"1700000001000000000"
print("duckdb and pandas agree on 1000 messages")
