"""Write a log of requests for the tutorial: `requests.csv`, 200 000 rows.

The columns are the time at which a request was sent, in seconds since 1970; the seconds until the
answer (empty if there was none); and the client. Latencies are lognormal: the median is 20 ms, and
a few take seconds.
"""

import csv
from pathlib import Path

import numpy as np

ROWS = 200_000

rng = np.random.default_rng(7)
sent = 1_760_000_000 + np.sort(rng.uniform(0, 100, ROWS))  # 100 seconds of traffic
latency = rng.lognormal(np.log(0.02), 1.2, ROWS)
lost = rng.random(ROWS) < 0.005
client = rng.integers(0, 5_000, ROWS)

with Path("requests.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["start", "seconds", "client"])
    for moment, seconds, is_lost, number in zip(sent, latency, lost, client, strict=True):
        writer.writerow([f"{moment:.6f}", "" if is_lost else f"{seconds:.6f}", f"client-{number}"])

print(f"requests.csv: {ROWS} requests, {np.count_nonzero(lost)} without an answer")
