"""The gate: every operation that programs call often, here and in another commit, in turns."""
