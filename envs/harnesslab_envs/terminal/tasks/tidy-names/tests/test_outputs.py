import shlex
from pathlib import Path

NAMES = shlex.split("""{{QUOTED}}""")


def renamed(name):
    stem, _, ending = name.rpartition(".")
    return f"{stem.lower().replace(' ', '-')}.{{NEW}}" if ending == "{{OLD}}" else name


def test_the_names_are_tidy():
    found = {file.name for file in Path("/app/photos").iterdir()}
    assert found == {renamed(name) for name in NAMES} | {"Read Me.txt"}


def test_each_file_kept_its_content():
    for name in NAMES:
        assert Path("/app/photos", renamed(name)).read_text() == f"{name}\n"
