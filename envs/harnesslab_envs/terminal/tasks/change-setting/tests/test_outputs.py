from pathlib import Path

ROOT = Path("/app/{{ROOT}}")


def lines(name):
    return [line.replace(" ", "") for line in (ROOT / name).read_text().splitlines()]


def test_the_key_has_the_new_value():
    assert "{{KEY}}={{NEW}}" in lines("main.ini")
    assert "{{KEY}}={{NEW}}" in lines("deep/more/extra.ini")


def test_nothing_else_changed():
    wanted = ["; {{KEY}} = {{OLD}} was set by hand", "[first]", "{{KEY}}={{NEW}}", "old_{{KEY}} = {{OLD}}"]
    assert lines("main.ini") == [line.replace(" ", "") for line in wanted]
    assert lines("deep/more/extra.ini") == ["[second]", "name={{OLD}}", "{{KEY}}={{NEW}}"]
    assert (ROOT / "deep/notes.txt").read_text() == "{{KEY}} = {{OLD}}\n"
