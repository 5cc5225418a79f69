"""The subcommands of `escapement`, one module each; see `compare.cli`."""
