"""`TemplateKernel`: the class over `template_kernel`.

The class of a kernel `timers/kernels/two_lists.py` is `TwoLists` in `timers/schemes/two_lists.py`,
and its name "two-lists".
"""

import template_kernel  # yours: from timers.kernels import NAME

from timers.rounding import Rounding
from timers.schemes.base import KernelTimer
from timers.traits import NO_COUNTER, READS, Cost, Load, Traits


class TemplateKernel(KernelTimer):
    """One list of all pending timers, sorted by deadline.

    >>> timer = TemplateKernel()
    >>> handles = timer.schedule_many([30, 10, 20])
    >>> timer.advance(20).deadlines.tolist()
    [10, 20]
    """

    _kernel = template_kernel
    traits = Traits(
        name="template-kernel",
        scheme="what the literature calls it",
        summary="one line for tables",
        # When a timer fires: "exact", or rounded to a tick; see `timers.rounding`.
        rounding=lambda parameters: Rounding("exact"),
        # Among equal deadlines: "fifo", or "unspecified".
        order="fifo",
        exact_next_expiry=True,
        # What grows with what, and the counter that shows it: tests measure each line.
        costs=(
            Cost("schedule", "N", "linear", Load.RANDOM_DEADLINES, "comparisons"),
            Cost("cancel", "N", "1", Load.ANY, NO_COUNTER),
            Cost("expiry", "N", "1", Load.ANY, "timers_touched"),
            Cost("next_wakeup", "N", "1", Load.ANY, READS),
        ),
        jumps="straight to the earliest deadline",
        suits="a few dozen timers",
        drawback="a schedule passes all timers with later deadlines",
        source="the paper, section or file",
    )
    # A timer with parameters has a constructor, and `parameters` in its traits: see
    # `timers/schemes/simple_wheel.py`.
