"""The charts of the page: one file for each kind of chart, with shared axes and settings."""
