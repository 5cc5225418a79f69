"""Run `wheelwork` as `python -m compare`."""

import sys


def main() -> int:
    """Run the command line and return its exit code; also for an interrupt during the imports."""
    try:
        from compare.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("wheelwork: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
