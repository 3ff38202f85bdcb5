"""The words of the project: Spark's nouns and the field's, in every file that a user or a developer reads."""

import re

import pytest
from project import ROOT

OLD = re.compile(
    r"\b(anew|whoever|somebody|nobody|so long|so many|(?<!cannot be )told|tells|clairvoyant|hindrances?|abilit(y|ies)|"
    r"wish(es)?)\b",
    re.I,
)
"""Words of earlier drafts; capacity, bottleneck, oracle, suggestion and objective are the words now.
"Cannot be told" is a verdict of `rheostat reproduce`."""
ELSEWHERE = re.compile(r"\b(CALIBRATION|SPARK|DESIGN|SEEDS|STYLE)\.md\b")
"""Files that are not in the project: a number's origin is a paper's table or a page of the project."""
READ = [
    path
    for place in ("src", "docs", "examples")
    for path in sorted((ROOT / place).rglob("*"))
    if path.suffix in (".py", ".md", ".j2", ".js", ".css", ".yaml")
    and path.name != "migrations.py"  # it names what old journals hold
] + [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]


@pytest.mark.parametrize("pattern", [OLD, ELSEWHERE], ids=["old words", "other files"])
def test_no_file_speaks_the_old_voice(pattern: re.Pattern[str]) -> None:
    places = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in READ
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert places == []
