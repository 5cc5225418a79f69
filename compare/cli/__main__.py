"""Run `wheelwork` as `python -m compare.cli`."""

import sys

from compare.cli.main import main

sys.exit(main())
