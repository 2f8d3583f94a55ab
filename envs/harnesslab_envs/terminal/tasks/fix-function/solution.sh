#!/bin/bash
cd /app
cat > fix.py <<'END'
import pathlib

file = pathlib.Path("{{MODULE}}.py")
file.write_text(file.read_text().replace("""{{WRONG}}""", """{{RIGHT}}"""))
END
python3 fix.py
rm fix.py
python3 -m pytest -q > /dev/null
