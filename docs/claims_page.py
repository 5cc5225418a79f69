"""Write docs/claims.md from the figures in docs/claims.json: `python docs/claims_page.py [RUN]`.

With a stored run of `wheelwork claims`, its figures replace those in the file first.
"""

import json
import sys
from pathlib import Path

from compare.cli.commands.claims import overview
from compare.trial.claims.run import settled
from compare.trial.results.schema import Row
from compare.trial.results.store import read_run

HERE = Path(__file__).parent
STORED, PAGE = HERE / "claims.json", HERE / "claims.md"
KEPT = ("created", "command", "machine", "versions")


def stored(path: str) -> str:
    """The figures of a stored run as JSON, with a line for each row."""
    run = read_run(path)
    facts = {name: run.manifest[name] for name in KEPT}
    rows = ",\n".join(json.dumps(list(row)) for row in run.rows)
    return f'{json.dumps(facts)[:-1]}, "rows": [\n{rows}\n]}}\n'


def page(text: str) -> str:
    """The page of stored figures."""
    facts = json.loads(text)
    return overview(facts, settled(Row(*row) for row in facts["rows"]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        STORED.write_text(stored(sys.argv[1]), encoding="utf-8")
    PAGE.write_text(page(STORED.read_text(encoding="utf-8")), encoding="utf-8")
