"""A queue of jobs with timeouts and retries, whose timers are recorded as a trace.

Each attempt has a timeout, which is cancelled when the attempt ends. An attempt that fails is
repeated after a pause that grows.

>>> main()
100 jobs, 20 retries
140 timers, 120 cancelled
"""

import asyncio
from collections import Counter

from compare import open_trace, record

JOBS, WORKERS = 100, 4
TIMEOUT, PAUSE = 5.0, 0.01


async def attempt(job: int, number: int) -> None:
    """Fail twice at every tenth job."""
    await asyncio.sleep(0)
    if job % 10 == 0 and number < 2:
        raise ConnectionError


async def run_jobs() -> int:
    """Return how many attempts failed."""
    queue: asyncio.Queue[int] = asyncio.Queue()
    failed: Counter[int] = Counter()
    loop = asyncio.get_running_loop()

    async def work() -> None:
        while True:
            job = await queue.get()
            try:
                async with asyncio.timeout(TIMEOUT):
                    await attempt(job, failed[job])
                queue.task_done()
            except (ConnectionError, TimeoutError):
                loop.call_later(PAUSE * 2 ** failed[job], again, job)
                failed[job] += 1

    def again(job: int) -> None:
        queue.put_nowait(job)
        queue.task_done()

    for job in range(JOBS):
        queue.put_nowait(job)
    workers = [asyncio.create_task(work()) for _ in range(WORKERS)]
    await queue.join()
    for worker in workers:
        worker.cancel()
    return failed.total()


def main() -> None:
    """Run the jobs, and say what was recorded."""
    with record("queue.trace", force=True):
        retries = asyncio.run(run_jobs())
    print(f"{JOBS} jobs, {retries} retries")
    totals = open_trace("queue.trace").totals
    print(f"{totals['starts']} timers, {totals['cancels']} cancelled")


if __name__ == "__main__":
    main()
