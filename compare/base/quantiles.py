"""The quantiles that are computed of lateness, delays and samples."""

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""Name -> the share that does not exceed the quantile."""


def title(name: str) -> str:
    """Return the name as it is shown.

    >>> [title(name) for name in QUANTILES]
    ['p50', 'p90', 'p99', 'p99.9', 'greatest']
    """
    return f"p{100 * QUANTILES[name]:g}" if QUANTILES[name] < 1 else "greatest"
