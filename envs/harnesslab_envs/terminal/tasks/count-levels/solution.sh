#!/bin/bash
python3 - <<'END'
import collections
import json

levels = collections.Counter(line.split()[2] for line in open("/app/{{LOGNAME}}.log"))
json.dump(levels, open("/app/levels.json", "w"))
END
