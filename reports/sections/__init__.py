"""The sections of the page: one file each, built from shared parts."""
