"""A progress bar for work that runs elsewhere, on a terminal only."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

INTERVAL = 0.25  # seconds between two looks
_BAR = "{desc} {percentage:3.0f}% {bar} {elapsed}"
_WIDTH = 54  # columns before the bar


@contextmanager
def progress(
    what: str,
    tasks: Callable[[], tuple[int, int]],
    rows: int | None = None,
    rows_done: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Show the progress of the block: tasks (ended, of all) and, if `rows_done` is given, rows."""
    if not sys.stderr.isatty():
        yield
        return
    finished = threading.Event()
    bar = tqdm(total=1.0, leave=False, dynamic_ncols=True, bar_format=_BAR)

    def look() -> None:
        while not finished.wait(INTERVAL):
            done, number = tasks()
            share = done / number if number else 0.0
            parts = [f"task {done} of {number}"] if number else []
            if rows_done is not None:
                written = rows_done()
                of = f" of {tqdm.format_sizeof(rows)}" if rows else ""
                parts.append(f"{tqdm.format_sizeof(written)}{of} rows")
                share = written / rows if rows else share
            bar.n = min(share, 1.0)
            text = f"{what}: {', '.join(parts)}" if parts else what
            bar.set_description_str(f"{text:<{_WIDTH}}"[:_WIDTH])

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    try:
        yield
    finally:
        finished.set()
        looker.join()
        bar.close()
