"""The expected expiries of a tape, in compiled code and in SQL, and how fired rows can differ."""
