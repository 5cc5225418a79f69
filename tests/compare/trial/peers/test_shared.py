"""Every helper has the facts that they share, and nothing writes them beside it."""

import pytest

from compare.trial.peers import shared
from compare.trial.peers.adapters import TEMPLATES
from compare.trial.peers.catalogue import HERE


def test_every_helper_has_a_syntax():
    assert {*shared.SYNTAXES} == {template.helper for template in TEMPLATES.values()}


@pytest.mark.parametrize("helper", shared.SYNTAXES)
def test_the_facts_of_a_helper_are_those_of_the_project(helper):
    text = (HERE / helper).read_text(encoding="utf-8")
    assert text == shared.updated(helper), "run python -m compare.trial.peers.shared"


@pytest.mark.parametrize("helper", shared.SYNTAXES)
def test_a_changed_fact_or_a_lost_mark_is_found(helper, tmp_path, monkeypatch):
    text = (HERE / helper).read_text(encoding="utf-8")
    monkeypatch.setattr(shared, "HERE", tmp_path)
    (tmp_path / helper).write_text(text.replace("WHLTAPE", "WHLTAPF", 1), encoding="utf-8")
    assert shared.updated(helper) == text
    (tmp_path / helper).write_text(text.replace("shared.py: end", "end"), encoding="utf-8")
    with pytest.raises(ValueError, match="0 sections"):
        shared.updated(helper)


@pytest.mark.parametrize("helper", shared.SYNTAXES)
@pytest.mark.parametrize(
    "fact", ["WHLTAPE", "is not a tape", "is cut short", "describe | check", "496"]
)
def test_a_fact_is_written_once(helper, fact):
    assert (HERE / helper).read_text(encoding="utf-8").count(fact) == 1
