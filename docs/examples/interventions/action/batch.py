"""A tool of the harness: several queries in one call, each of them a step."""

TOOL = {
    "type": "function",
    "function": {
        "name": "execute_all",
        "description": "Run up to five SQL statements, one after the other. Each costs a step.",
        "parameters": {
            "type": "object",
            "properties": {"queries": {"type": "array", "items": {"type": "string"}, "maxItems": 5}},
            "required": ["queries"],
        },
    },
}


def offer(context, tools):
    return [*tools, TOOL] if any(tool["function"]["name"] == "execute_sql" for tool in tools) else None


def call(context, call):
    queries = [query for query in call["arguments"]["queries"] if isinstance(query, str)][:5]
    if not queries:
        return "Give at least one statement."
    return {"actions": [{"name": "execute_sql", "arguments": {"query": query}} for query in queries]}
