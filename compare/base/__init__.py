"""Arguments, files, progress and engines, which everything else uses."""
