"""The map is true: every folder says which files it has, none has too many, and ARCHITECTURE.md has a line for each."""

import ast
import re
from pathlib import Path

import pytest
from project import ROOT

SOURCE = ROOT / "src" / "rheostat"
FOLDERS = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
MOST_FILES = 20


def files_in_docstring(folder: Path) -> set[str]:
    """What the folder's docstring says that it holds."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return set(re.findall(r"`([a-z_0-9]+(?:\.py|/))`", text))


@pytest.mark.parametrize("folder", FOLDERS[1:], ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_folder_lists_its_files_in_its_docstring(folder: Path) -> None:
    files = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    folders = {f"{path.parent.name}/" for path in folder.glob("*/__init__.py")}
    assert files_in_docstring(folder) == files | folders


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_folder_has_too_many_files(folder: Path) -> None:
    assert len(list(folder.glob("*.py"))) <= MOST_FILES


def test_the_map_has_a_line_for_every_folder() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    missing = [
        str(folder.relative_to(SOURCE)) for folder in FOLDERS[1:] if f"`{folder.relative_to(SOURCE)}/`" not in text
    ]
    assert missing == []
    beside = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert [name for name in sorted(beside) if f"`{name}`" not in text] == []
    assert len(text.splitlines()) <= 120
