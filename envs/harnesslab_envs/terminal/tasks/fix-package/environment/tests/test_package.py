import sys

sys.path.insert(0, "/app")
from {{PACKAGE}} import {{MAIN}}


{{CASES}}
