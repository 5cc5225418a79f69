"""The quantiles that are computed of lateness, delays, latencies and samples."""

TAIL = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999, "max": 1.0}
"""Name -> the share that does not exceed the quantile."""

QUANTILES = {name: share for name, share in TAIL.items() if name != "p9999"}
"""Those of fewer samples."""


def title(name: str) -> str:
    """Return the name as it is shown.

    >>> [title(name) for name in TAIL]
    ['p50', 'p90', 'p99', 'p99.9', 'p99.99', 'greatest']
    """
    return f"p{100 * TAIL[name]:g}" if TAIL[name] < 1 else "greatest"
