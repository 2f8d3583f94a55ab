#!/bin/bash
python3 - <<'END'
import json


def merge(base, over):
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return base | {key: merge(base[key], value) if key in base else value for key, value in over.items()}


base, over = (json.load(open(f"/app/{name}.json")) for name in ("base", "{{NAME}}"))
json.dump(merge(base, over), open("/app/merged.json", "w"))
END
