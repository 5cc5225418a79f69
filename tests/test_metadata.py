"""What a registry shows: with the address of the site, which is one setting, and without."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("hatchling")
ROOT = Path(__file__).parents[1]
SITE = "https://example.org/wheelwork"
README = (ROOT / "README.md").read_text()


def filled(site):
    """The fields that depend on the site."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    metadata = {}
    module.Site(str(ROOT), {"site": site}).update(metadata)
    return metadata


def links_in(text):
    return re.findall(r"\]\(([^)]+)\)", text)


def test_without_a_site_there_are_no_urls_and_links_stay_relative():
    assert filled("") == {"readme": {"content-type": "text/markdown", "text": README}}


@pytest.mark.parametrize("end", ["", "/"])
def test_with_a_site_every_link_leads_into_its_documentation(end):
    metadata = filled(SITE + end)
    assert metadata["urls"] == {"Homepage": f"{SITE}/", "Documentation": f"{SITE}/docs/"}
    links = links_in(metadata["readme"]["text"])
    relative = [link for link in links_in(README) if link.startswith("docs/")]
    assert len(links) == len(relative) > 5
    for link in links:
        page = link.removeprefix(f"{SITE}/docs/")
        assert page != link
        file = page.replace("_static/", "images/").replace(".html", ".md").partition("#")[0]
        assert (ROOT / "docs" / file).is_file(), link


def test_the_readme_can_be_rendered():
    rendered = pytest.importorskip("readme_renderer.markdown", reason="no readme_renderer")
    html = rendered.render(filled(SITE)["readme"]["text"])
    assert html is not None
    assert "<table" in html
    assert html.count("<pre") == README.count("```") // 2
