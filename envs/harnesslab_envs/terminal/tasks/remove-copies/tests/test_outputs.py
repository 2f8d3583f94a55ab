from pathlib import Path

PAIRS = dict(pair.split("=") for pair in "{{PAIRS}}".split())
FIRST = {}
for name in sorted(PAIRS):
    FIRST.setdefault(PAIRS[name], name)


def test_one_of_each_is_left():
    left = {file.name: file.read_text().strip() for file in Path("/app/{{FOLDER}}").iterdir()}
    assert left == {name: content for content, name in FIRST.items()}


def test_the_list_is_right():
    assert Path("/app/deleted.txt").read_text().split() == sorted(set(PAIRS) - set(FIRST.values()))
