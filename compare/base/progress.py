"""Progress bars, shown only on a terminal."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

INTERVAL = 0.25  # seconds between updates
_WIDTH = 54  # columns before the bar


def progress_bar(
    total: float | None, form: str = "{desc} {percentage:3.0f}% {bar} {elapsed}, {remaining} left"
) -> tqdm:
    """A bar that disappears when it is closed; invisible unless stderr is a terminal."""
    return tqdm(
        total=total,
        disable=not sys.stderr.isatty(),
        leave=False,
        dynamic_ncols=True,
        bar_format=form,
    )


def tell(text: str) -> None:
    """Print a line to stderr, above a bar that is shown."""
    tqdm.write(text, file=sys.stderr)


@contextmanager
def progress(
    activity: str,
    tasks: Callable[[], tuple[int, int]],
    rows: int | None = None,
    rows_done: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Show the progress of work that runs elsewhere: tasks (ended, total) and, if given, rows."""
    bar = progress_bar(1.0)
    if bar.disable:
        yield
        return
    finished = threading.Event()

    def update() -> None:
        while not finished.wait(INTERVAL):
            ended, total = tasks()
            share = ended / total if total else 0.0
            parts = [f"task {ended} of {total}"] if total else []
            if rows_done is not None:
                written = rows_done()
                all_rows = f" of {tqdm.format_sizeof(rows)}" if rows else ""
                parts.append(f"{tqdm.format_sizeof(written)}{all_rows} rows")
                share = written / rows if rows else share
            bar.n = min(share, 1.0)
            text = f"{activity}: {', '.join(parts)}" if parts else activity
            bar.set_description_str(f"{text:<{_WIDTH}}"[:_WIDTH])

    updater = threading.Thread(target=update, daemon=True)
    updater.start()
    try:
        yield
    finally:
        finished.set()
        updater.join()
        bar.close()
