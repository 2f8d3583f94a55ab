"""A tool of the harness: exact arithmetic."""

import ast
import operator
from fractions import Fraction

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
TOOL = {
    "type": "function",
    "function": {
        "name": "calculate",
        "description": "The exact value of an expression of numbers, + - * / and brackets. Costs a step.",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    },
}


def value(node):
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return Fraction(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value(node.left), value(node.right))
    raise ValueError


def offer(context, tools):
    return [*tools, TOOL]


def call(context, call):
    try:
        result = value(ast.parse(call["arguments"]["expression"], mode="eval").body)
    except (ValueError, SyntaxError, KeyError, TypeError):
        return "That is not an expression of numbers."
    except ZeroDivisionError:
        return "Division by zero."
    return str(result) if result.denominator == 1 else str(float(result))
