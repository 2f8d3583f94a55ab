"""A scripted model for the browser tests: a notebook runs this text as its first cell."""

from __future__ import annotations

import re


def model(messages):
    """Writes the obvious query, quotes nothing, and commits what comes back."""
    task = next(m["content"] for m in messages if "Question:" in str(m["content"]))
    table = re.search(r"name of this table is (.+?), and", task)[1]
    seen = messages[-1]["content"]
    if found := re.search(r"\[\('?(.+?)'?,\)\]", seen):
        return f'Action: commit_final_answer\n["{found[1]}"]'
    if count := re.search(r"How many rows have (.+?) as their (.+?)\?", task):
        query = f"SELECT COUNT(*) FROM {table} WHERE {count[2]} = '{count[1]}';"
    else:
        ask = re.search(r"What is the (.+?) of the (\w+) (.+?)\?", task)
        query = f"SELECT {ask[1]} FROM {table} WHERE {ask[2]} = '{ask[3]}';"
    return f"Action: execute_sql\n```sql\n{query}\n```"
