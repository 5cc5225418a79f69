"""The enqueue experiment: two designs of a purgatory under the same requests."""
