"""Prints, after pytest-benchmark's own table, the ratios of medians that the project holds itself to."""
from tests.bench.test_ratios import BATCH, HEAPQ, KERNELS, SIZES, TARGETS, YARDSTICK

BATCH_TARGET, SCALAR_TARGET = 1.2, 2.5


def pytest_terminal_summary(terminalreporter, config):
    session = getattr(config, "_benchmarksession", None)
    if session is None or not session.benchmarks:
        return
    found = {}
    for bench in session.benchmarks:
        info = bench.extra_info
        samples = sorted(time / info["per"] * 1e9 for time in bench.stats.data)
        found[info["name"], info["operation"], info["size"]] = samples
    write = terminalreporter.write_line
    write("")
    write("median ns per operation [quartiles], ratio of medians within this run, and what is asked for")

    def median(samples):
        return samples[len(samples) // 2]

    def line(name, operation, size, against, target):
        samples, base = found.get((name, operation, size)), found.get(against)
        if not samples or not base:
            return
        ratio = median(samples) / median(base)
        spread = f"[{samples[len(samples) // 4]:.1f} .. {samples[-1 - len(samples) // 4]:.1f}]"
        verdict = "" if target is None else f" <= {target}" if ratio <= target else f" >  {target}  falls short"
        write(f"{name:<30} {operation:<7} {median(samples):>8.1f} {spread:<20} {ratio:>6.2f}x {against[0]}{verdict}")

    for size in SIZES:
        write(f"N = {size:,}")
        for operation in ("insert", "cancel", "hold", "expire"):
            line(YARDSTICK, operation, size, (YARDSTICK, operation, size), None)
            for name in KERNELS:
                base, target = TARGETS.get((name, operation), (YARDSTICK, None))
                against = (HEAPQ, "push", size) if base == HEAPQ else (YARDSTICK, operation, size)
                line(name, operation, size, against, target)
        line(HEAPQ, "push", size, (HEAPQ, "push", size), None)
    write(f"batch calls at N = {BATCH:,}, against replay")
    for name in KERNELS:
        for operation in ("insert", "cancel"):
            line(f"{name}, batch call", operation, BATCH, (name, operation, BATCH), BATCH_TARGET)
    write("scalar schedule + cancel, the pair")
    for name in KERNELS:
        line(name, "pair", 0, ("two bare calls", "pair", 0), SCALAR_TARGET)
