import sys
from pathlib import Path

sys.path.insert(0, "/app")
import {{MODULE}}


def test_the_visible_cases():
    names = {name: getattr({{MODULE}}, name) for name in dir({{MODULE}})}
    assert Path("/app/test_{{MODULE}}.py").read_text().rstrip("\n") == '''{{TESTS}}'''
    code = "\n".join(line for line in '''{{TESTS}}'''.splitlines() if not line.startswith("from "))
    exec(code, names)
    for name in [name for name in names if name.startswith("test_")]:
        names[name]()


def test_more_cases():
    assert {{MORE}}
