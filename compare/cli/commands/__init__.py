"""The subcommands of `wheelwork`, one module each."""
