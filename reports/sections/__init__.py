"""The sections of the page: a file each, built from the parts that they share."""
