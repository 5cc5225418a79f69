"""Arguments, files, progress and executors, which everything else uses."""
