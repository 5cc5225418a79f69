"""The subcommands of `wheelwork`, one module each; see `compare.cli.main`."""
