"""Write a picture of a timer's structure as SVG, PNG, or a page that steps through time."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from compare.base.files import errors_as, new_file, parents
from reports.anatomy.drawing import Layout, picture
from reports.anatomy.steps import AnatomyError, Step
from reports.palette import css

FORMS = (".svg", ".png", ".html")


def form_of(out: str | os.PathLike[str]) -> str:
    """The suffix of a file that can be written. Raises AnatomyError for any other."""
    form = Path(out).suffix.lower()
    if form not in FORMS:
        raise AnatomyError(f"{out} must end in {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    return form


def write(
    steps: Sequence[Step], title: str, out: str | os.PathLike[str], origin: int = 0, more: str = ""
) -> None:
    """Write the steps to the file `out`: one as a picture, or any number as a page.

    `more` describes what follows the last step. Raises AnatomyError if a step cannot be drawn or
    the file cannot be written.
    """
    form = form_of(out)
    layout = Layout.for_steps(steps, with_text=form != ".html")
    pictures = [picture(step, title, layout, origin) for step in steps]
    if form == ".png":
        content = pictures[0].png()
    elif form == ".svg":
        content = pictures[0].svg().encode()
    else:
        environment = Environment(
            loader=PackageLoader("reports.anatomy", "."),
            autoescape=True,
            trim_blocks=True,
            undefined=StrictUndefined,
        )
        frames = [
            {"text": drawn.caption, "svg": Markup(replace(drawn, name=f"s{k}").element())}
            for k, drawn in enumerate(pictures)
        ]
        page = environment.get_template("player.html")
        content = page.render(title=title, frames=frames, more=more, colours=Markup(css())).encode()
    with errors_as(AnatomyError, f"cannot write {out}"), parents(out), new_file(out) as temporary:
        temporary.write_bytes(content)
