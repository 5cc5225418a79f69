"""One fixed random tape of operations, played on every timer: what it returned, as JSON.

python -m tests.timers.tapes        prints {timer: digest of all that it returned and counted}
"""

import hashlib
import json
import sys
from typing import Any

import numpy as np

from tests.timers.cases import CASES, DEFAULTS, Case, rows_of

OPERATIONS = 600
ASKED_EVERY = 10  # operations: some questions cost a look at all timers
AT_ONCE = 600  # timers due in one unit: more than one part of an advance holds
SEED = 20_241
STARTS = (2**31 - 100, 2**62 + 255)
# Widths of delays and steps of the clock, in bits: within a slot, a rotation, each level, and
# beyond all of them.
DELAY_BITS = (3, 6, 9, 12, 17, 25, 33, 41, 50)
STEP_BITS = (0, 0, 1, 3, 6, 9, 12, 17, 33)


def play(case: Case, start: int) -> dict[str, Any]:
    """Play the tape and return everything that the timer said."""
    random = np.random.default_rng(SEED)
    timer: Any = case(start=start, capacity=4, **({"counting": True} if case.has_kernel else {}))
    handles: list[int] = [1]
    said: list[Any] = []
    fired: list[tuple[int, int, int]] = []

    def delay() -> int:
        return int(random.integers(0, 2 ** int(random.choice(DELAY_BITS)), endpoint=True))

    def any_handle() -> int:
        return handles[-1 - int(random.integers(0, min(len(handles), 60)))]

    for k in range(OPERATIONS):
        operation = random.random()
        if operation < 0.45:
            handles.append(timer.schedule_after(delay()))
        elif operation < 0.55:
            handles += timer.schedule_many([timer.now + delay() for _ in range(3)]).tolist()
        elif operation < 0.65:
            said.append(timer.cancel(any_handle()))
        elif operation < 0.75:
            said.append(timer.reschedule(any_handle(), timer.now + delay()))
        elif operation < 0.80:
            said.append(timer.cancel_many([any_handle(), any_handle()]).tolist())
        elif operation < 0.85:
            pairs = timer.reschedule_many(
                [any_handle(), any_handle()], [timer.now + delay(), timer.now]
            )
            said.append(pairs.tolist())
        else:
            step = int(random.integers(0, 2 ** int(random.choice(STEP_BITS)), endpoint=True))
            fired += rows_of(timer.advance(timer.now + step))
        if k % ASKED_EVERY == 0:
            said.append((timer.next_expiry(), timer.next_wakeup(), len(timer)))
            if case.has_kernel:
                said += [timer.locate(any_handle()) for _ in range(3)]
                said.append(repr(timer.snapshot()))
    timer.check()
    handles += timer.schedule_many([timer.now + 5] * AT_ONCE).tolist()
    fired += rows_of(timer.advance(timer.now + 300))
    timer.cancel_many(handles)
    for far in (2**63 - 1, timer.now + 2**41, timer.now + 700):  # alone, then the latest of several
        handles.append(timer.schedule(min(far, 2**63 - 1)))
        said.append((timer.next_expiry(), timer.next_wakeup()))
    fired += rows_of(timer.advance(2**63 - 1))
    counters = timer.counters if case.has_kernel else None
    return {
        "fired": fired,
        "said": said,
        "handles": handles,
        "counters": counters,
        "nbytes": timer.nbytes,
    }


def digests() -> dict[str, str]:
    """The digest of what each timer said, by timer and start: one geometry from both."""
    return {
        f"{case} from {start}": hashlib.sha256(json.dumps(play(case, start)).encode()).hexdigest()
        for start, cases in zip(STARTS, (CASES, DEFAULTS), strict=True)
        for case in cases
    }


if __name__ == "__main__":
    json.dump(digests(), sys.stdout)
