"""The charts of the page: a file a kind, on the axes and with the settings that they share."""
