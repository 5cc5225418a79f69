"""Reading logs of many formats, and turning their rows into timer operations."""
