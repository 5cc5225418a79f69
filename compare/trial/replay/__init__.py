"""Running a tape through a timer, and its outcome: counts, expiries, lateness."""
