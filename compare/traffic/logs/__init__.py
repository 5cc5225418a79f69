"""Reading logs of many formats, and turning them into traces."""
