"""Print the ratios that the project aims for, after pytest-benchmark's own table."""

from statistics import median, quantiles


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)  # private: pytest-benchmark has no other
    if session is None or not session.benchmarks:
        return
    write = terminalreporter.write_line
    calls = [bench for bench in session.benchmarks if bench.group == "calls"]
    ratios = [bench for bench in session.benchmarks if bench.group != "calls"]
    if calls:
        write_calls(write, calls)
    if ratios:
        write_ratios(write, ratios)


def write_calls(write, benchmarks):
    write("")
    write("One call from Python, in ns: median [quartiles] of the rounds.")
    for bench in benchmarks:
        info = bench.extra_info
        samples = [time / info["calls"] * 1e9 for time in bench.stats.data]
        low, middle, high = quantiles(samples, n=4)
        write(
            f"{info['name']:<18} {info['operation']:<21} {middle:>6.0f}"
            f"  {low:>6.0f} .. {high:>6.0f}  {verdict_of(middle, info['target'])}"
        )


def verdict_of(value, target):
    return "" if target is None else f"<= {target}" if value <= target else f"over {target}"


def write_ratios(write, benchmarks):
    write("")
    write(
        "Each round ran right after a round of its base. ns: median per operation;"
        " ratio: median [quartiles]."
    )
    head = f"{'timer':<29} {'operation':<13} {'N':>9} {'ns':>8} {'base ns':>8} {'ratio':>6}"
    write(f"{head}  quartiles    target, base")
    for bench in sorted(benchmarks, key=lambda bench: (bench.group, bench.extra_info["name"])):
        info = bench.extra_info
        samples = [time / info["per"] * 1e9 for time in bench.stats.data]
        base = [time / info["per"] * 1e9 for time in info["base_seconds"]]
        ratios = [a / b for a, b in zip(samples, base, strict=True)]
        low, ratio, high = quantiles(ratios, n=4)
        verdict = verdict_of(ratio, info["target"])
        write(
            f"{info['name']:<29} {info['operation']:<13} {info['size']:>9,}"
            f" {median(samples):>8.1f} {median(base):>8.1f}"
            f" {ratio:>6.2f}  {low:.2f} .. {high:.2f}  {verdict:<9} {info['base']}"
        )
