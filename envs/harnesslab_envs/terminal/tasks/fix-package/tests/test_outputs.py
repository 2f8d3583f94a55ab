import subprocess
import sys
from pathlib import Path


def test_the_visible_tests_pass_unchanged():
    expected = '''{{CASES}}'''
    assert expected in Path("/app/tests/test_package.py").read_text()
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"], cwd="/app")
    assert done.returncode == 0


def test_more_cases():
    sys.path.insert(0, "/app")
    from {{PACKAGE}} import {{MAIN}}

    assert {{MORE}}
