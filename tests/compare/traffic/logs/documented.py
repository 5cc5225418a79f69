"""The commands that the documentation says to type."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]

SECTION = re.search(r"## What to type\n(.*?)```\n", (ROOT / "docs/logs.md").read_text(), re.DOTALL)

LINES = SECTION[1].replace("\\\n", " ").splitlines()

COMMANDS = [line for line in LINES if line.startswith("wheelwork ingest")]
