"""Seeded bugs: small changes to the kernels, each of which the state machine must notice.

`old` occurs exactly once in the file; the changed kernel is run as `timer`, in all its test
geometries.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    bug: str  # in a few words
    timer: str  # the name of the timer that has it
    file: str  # in timers/kernels
    old: str
    new: str


MUTANTS = [
    # -- the rows that all wheels share
    Mutant(
        "a stale handle is accepted",
        "cascading-wheel",
        "pool.py",
        'if nodes[i]["generation"] != generation_of(handle) or nodes[i]["prev"] == FREE_ROW:',
        'if nodes[i]["prev"] == FREE_ROW:',
    ),
    Mutant(
        "the handle of a place's next use is accepted before that use",
        "simple-wheel",
        "pool.py",
        'if nodes[i]["generation"] != generation_of(handle) or nodes[i]["prev"] == FREE_ROW:',
        'if nodes[i]["generation"] != generation_of(handle):',
    ),
    Mutant(
        "the generation is not raised when a place is given back",
        "hashed-wheel",
        "pool.py",
        'nodes[i]["generation"] = generation + 1',
        'nodes[i]["generation"] = generation',
    ),
    Mutant(
        "cancelling the last timer of a bucket forgets the bucket's tail",
        "cascading-wheel",
        "pool.py",
        '    nodes[after]["prev"] = before\n    if before == after:',
        "    if before == after:",
    ),
    Mutant(
        "cancelling the only timer of a bucket leaves its occupancy bit",
        "simple-wheel",
        "pool.py",
        "    if before == after:  # only the sentinel is left\n        unmark(cells, bits, before)",
        "    pass",
    ),
    Mutant(
        "delivery writes one row more than there is room for",
        "cascading-wheel",
        "pool.py",
        "while i != bucket and n < out.size:",
        "while i != bucket and n <= out.size:",
    ),
    Mutant(
        "what did not fit into the buffer is not linked back",
        "hierarchical-wheel",
        "pool.py",
        '    nodes[bucket]["next"] = i\n    nodes[i]["prev"] = bucket\n    return n',
        '    nodes[bucket]["next"] = i\n    return n',
    ),
    Mutant(
        "growing loses the places that were still free",
        "unordered-list",
        "pool.py",
        'larger[larger.size - 1]["next"] = target_cells[FREE]',
        'larger[larger.size - 1]["next"] = NO_ROW',
    ),
    Mutant(
        "the earliest in a bucket is taken to be the last in it",
        "cascading-wheel",
        "pool.py",
        'earliest = min(earliest, nodes[i]["deadline"])',
        'earliest = nodes[i]["deadline"]',
    ),
    # -- occupancy bits
    Mutant(
        "the search for the next occupied bucket stops a word early",
        "cascading-wheel",
        "bitmap.py",
        "if at > last:",
        "if at >= last:",
    ),
    Mutant(
        "the search for the next occupied bucket passes over the one where it starts",
        "hashed-wheel",
        "bitmap.py",
        "(_WORD_MASK << (start & _BIT_MASK))",
        "(_WORD_MASK << (start & _BIT_MASK) + 1)",
    ),
    # -- unordered list
    Mutant(
        "timers with equal deadlines are merged in the wrong order",
        "unordered-list",
        "unordered_list.py",
        'if nodes[right]["deadline"] < nodes[left]["deadline"]:',
        'if nodes[right]["deadline"] <= nodes[left]["deadline"]:',
    ),
    Mutant(
        "a timer due exactly now is left in the list",
        "unordered-list",
        "unordered_list.py",
        'if nodes[i]["deadline"] <= now:',
        'if nodes[i]["deadline"] < now:',
    ),
    Mutant(
        "timers that were armed overdue are not sorted",
        "unordered-list",
        "unordered_list.py",
        "        link(nodes, DUE, i)\n        cells[SORTED] = 0\n\n",
        "        link(nodes, DUE, i)\n\n",
    ),
    # -- delay queue
    Mutant(
        "equal deadlines come out last armed, first delivered",
        "delay-queue",
        "delay_queue.py",
        "cells[entry_of(k, ORDER)] < order)",
        "cells[entry_of(k, ORDER)] > order)",
    ),
    Mutant(
        "a re-arm to the same deadline keeps its place in the heap",
        "delay-queue",
        "delay_queue.py",
        "if deadline >= cells[entry_of(k, DEADLINE)]:",
        "if deadline > cells[entry_of(k, DEADLINE)]:",
    ),
    Mutant(
        "a hole above a single child does not sink",
        "delay-queue",
        "delay_queue.py",
        "    if child_of(k) < size:\n",
        "    if child_of(k) + 1 < size:\n",
    ),
    Mutant(
        "the entry that fills a hole does not rise",
        "delay-queue",
        "delay_queue.py",
        "counters, k, size)\n    sift_up(nodes, cells, counters, k,",
        "counters, k, size)\n    put(nodes, cells, k,",
    ),
    Mutant(
        "numbering a heap's entries anew exchanges the deadlines of the first and the last",
        "delay-queue",
        "delay_queue.py",
        "put(nodes, cells, high, late, ",
        "put(nodes, cells, high, early, ",
    ),
    # -- simple wheel
    Mutant(
        "a deadline exactly one rotation away goes into the present slot",
        "simple-wheel",
        "simple_wheel.py",
        "if delay >= wheel_size:",
        "if delay > wheel_size:",
    ),
    Mutant(
        "the overflow list lets a timer into the present slot",
        "simple-wheel",
        "simple_wheel.py",
        "if deadline - cells[NOW] < cells[WHEEL_SIZE]:",
        "if deadline - cells[NOW] <= cells[WHEEL_SIZE]:",
    ),
    Mutant(
        "the earliest deadline left in the overflow list is taken to be its last",
        "simple-wheel",
        "simple_wheel.py",
        "earliest = min(earliest, deadline)",
        "earliest = deadline",
    ),
    Mutant(
        "an earlier deadline in the overflow list is not noted",
        "simple-wheel",
        "simple_wheel.py",
        "if is_empty(nodes, overflow) or deadline < cells[OVERFLOW_MIN]:",
        "if is_empty(nodes, overflow):",
    ),
    Mutant(
        "next_expiry does not look into the overflow list",
        "simple-wheel",
        "simple_wheel.py",
        "if moment == NONE or (scan_at != NONE and cells[OVERFLOW_MIN] < moment):",
        "if moment == NONE:",
    ),
    # -- hashed wheel
    Mutant(
        "rounds are not decremented",
        "hashed-wheel",
        "hashed_wheel.py",
        'nodes[i]["rounds"] = rounds - 1',
        'nodes[i]["rounds"] = rounds',
    ),
    Mutant(
        "rounds are one too few on a multiple of the wheel size",
        "hashed-wheel",
        "hashed_wheel.py",
        "rounds_of(rotations(ticks_ahead, cells))",
        "rounds_of(rotations(max(ticks_ahead - 1, 0), cells))",
    ),
    Mutant(
        "a long jump skips the rotation of the next timer",
        "hashed-wheel",
        "hashed_wheel.py",
        "fewest = min(fewest, rotations(ticks_ahead, cells))",
        "fewest = min(fewest, rotations(ticks_ahead, cells) + 1)",
    ),
    Mutant(
        "the end of the last tick wraps at 2**63 - 1",
        "hashed-wheel",
        "hashed_wheel.py",
        "return LIMIT if start > LIMIT - tick else start + tick",
        "return start + tick",
    ),
    Mutant(
        "a deadline that is now waits for the end of its tick",
        "hashed-wheel",
        "hashed_wheel.py",
        "is_due = deadline <= cells[NOW]",
        "is_due = deadline < cells[NOW]",
    ),
    Mutant(
        "what arrived is not hashed while the clock stays within two ticks",
        "hashed-wheel",
        "hashed_wheel.py",
        "if until > cells[CURRENT_TICK] or now == LIMIT:",
        "if until > cells[CURRENT_TICK] + 1 or now == LIMIT:",
    ),
    Mutant(
        "the next expiry is that of the slots alone",
        "hashed-wheel",
        "hashed_wheel.py",
        "end_of(\n        quotient(earliest_in(nodes, arrivals_bucket(cells)), cells[TICK]),"
        " cells[TICK]\n    )",
        "LIMIT",
    ),
    # -- hierarchical wheel
    Mutant(
        "a bucket is put into the queue with each of its timers",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        '["deadline"] != expiration:',
        '["deadline"] != expiration or True:',
    ),
    Mutant(
        "a deadline one unit beyond a level's interval stays on that level",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        "return current + interval - 1",
        "return current + interval + 1",
    ),
    Mutant(
        "a level's clock lags one tick behind",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        "if ahead < tick:",
        "if ahead <= tick:",
    ),
    Mutant(
        "a timer of the next tick is due",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        "deadline - field_of(cells, 0, CURRENT) < field_of(cells, 0, TICK):",
        "deadline - field_of(cells, 0, CURRENT) <= field_of(cells, 0, TICK):",
    ),
    Mutant(
        "the queue's heap has the wrong parents",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        "parent = (k - 1) >> 1",
        "parent = k >> 1",
    ),
    Mutant(
        "filing again drops the last timer of a bucket",
        "hierarchical-wheel",
        "hierarchical_wheel.py",
        "    i = detach(nodes, bucket)\n    while i != bucket:",
        '    i = detach(nodes, bucket)\n    while nodes[i]["next"] != bucket:',
    ),
    # -- cascading wheel
    Mutant(
        "a deadline 256 units away goes into the present slot",
        "cascading-wheel",
        "cascading_wheel.py",
        "if delay < 1 << ((level + 1) * SLOT_BITS):",
        "if delay <= 1 << ((level + 1) * SLOT_BITS):",
    ),
    Mutant(
        "the second level takes deadlines of its next turn",
        "cascading-wheel",
        "cascading_wheel.py",
        "if delay < 1 << ((level + 1) * SLOT_BITS):",
        "if delay < 1 << ((level + 1) * SLOT_BITS + (level == 1)):",
    ),
    Mutant(
        "a cascade drops the last timer of a slot",
        "cascading-wheel",
        "cascading_wheel.py",
        "    while i != bucket:",
        '    while nodes[i]["next"] != bucket:',
    ),
    Mutant(
        "a slot that has cascaded keeps its occupancy bit",
        "cascading-wheel",
        "cascading_wheel.py",
        "    unmark(cells, WORDS, bucket)\n    while i != bucket:",
        "    while i != bucket:",
    ),
    Mutant(
        "a slot that opens a full turn from now is not seen",
        "cascading-wheel",
        "cascading_wheel.py",
        "bucket = next_marked(cells, WORDS, first, first + at + 1)",
        "bucket = next_marked(cells, WORDS, first, first + at)",
    ),
    Mutant(
        "an earlier deadline beyond the wheels' reach is not noted",
        "cascading-wheel",
        "cascading_wheel.py",
        "(is_empty(nodes, OVERFLOW) or deadline < cells[OVERFLOW_MIN])",
        "is_empty(nodes, OVERFLOW)",
    ),
    Mutant(
        "a re-arm keeps the old bucket",
        "cascading-wheel",
        "operations.py",
        "remove(nodes, cells, counters, i)\n        insert(nodes, cells, counters, i, deadline)",
        'nodes[i]["deadline"] = deadline',
    ),
    Mutant(
        "the place of a cancelled timer is not given back",
        "delay-queue",
        "operations.py",
        "release(nodes, cells, i)\n        return True",
        "return True",
    ),
]
