"""Running a tape through a timer, and the outcome: counts, expiries, lateness."""
