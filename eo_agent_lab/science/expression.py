"""Arithmetic on text, parsed by a grammar of its own; nothing is ever evaluated as code.

expression := term (("+" | "-") term)*
term       := factor (("*" | "/" | "//" | "%") factor)*
factor     := ("+" | "-") factor | power
power      := atom (("**" | "^") factor)?
atom       := number | name | name "(" expression ("," expression)* ")" | "(" expression ")"
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op>\*\*|//|[-+*/%^(),]))"
)
_CONSTANTS = {"pi": math.pi, "e": math.e}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "sqrt": math.sqrt,
    "round": lambda value, digits=0.0: float(round(value, int(digits))),
    "min": min,
    "max": max,
    "sum": lambda *values: math.fsum(values),
    "mean": lambda *values: math.fsum(values) / len(values),
    "log": math.log,
    "log10": math.log10,
    "exp": math.exp,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
}
MAX_LENGTH = 1000
MAX_DEPTH = 50
LIMIT = 1e100


def calculate(text: str) -> float:
    """Return the value of an arithmetic expression.

    Args:
        text: Numbers, ``+ - * / // % ** ^``, parentheses, ``pi``, ``e`` and the functions abs,
            sqrt, round, min, max, sum, mean, log, log10, exp, sin, cos, tan (radians), floor, ceil.

    Raises:
        ValueError: The text is no such expression, or its value is not a finite number.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(
            f"the expression has {len(text)} characters; at most {MAX_LENGTH} are read"
        )
    parser = _Parser(_tokens(text))
    try:
        value = float(parser.expression(0))
    except ZeroDivisionError:
        raise ValueError("the expression divides by zero") from None
    except OverflowError:
        raise ValueError("the result is too large") from None
    except TypeError:
        raise ValueError("a function has the wrong number of arguments") from None
    parser.expect_end()
    return _finite(value)


def _finite(value: float) -> float:
    if isinstance(value, complex) or not math.isfinite(value) or abs(value) > LIMIT:
        raise ValueError("the result is not a finite number of sensible size")
    return value


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            raise ValueError(
                f"{stripped[position : position + 12]!r} is no arithmetic; use numbers, + - * / // "
                "% **, parentheses and functions such as sqrt or mean"
            )
        kind = match.lastgroup or "op"
        tokens.append((kind, match[kind]))
        position = match.end()
    if not tokens:
        raise ValueError("the expression is empty")
    return tokens


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = tokens
        self.position = 0

    def peek(self) -> str:
        return self.tokens[self.position][1] if self.position < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        if self.position >= len(self.tokens):
            raise ValueError("the expression breaks off; a number is missing at its end")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect_end(self) -> None:
        if self.position < len(self.tokens):
            raise ValueError(f"{self.peek()!r} is not expected there; check the parentheses")

    def expression(self, depth: int) -> float:
        if depth > MAX_DEPTH:
            raise ValueError(f"parentheses are nested deeper than {MAX_DEPTH}")
        value = self.term(depth)
        while self.peek() in ("+", "-"):
            sign = self.take()[1]
            other = self.term(depth)
            value = value + other if sign == "+" else value - other
        return value

    def term(self, depth: int) -> float:
        value = self.factor(depth)
        while self.peek() in ("*", "/", "//", "%"):
            sign = self.take()[1]
            other = self.factor(depth)
            if sign == "*":
                value = value * other
            elif sign == "/":
                value = value / other
            elif sign == "//":
                value = value // other
            else:
                value = value % other
        return value

    def factor(self, depth: int) -> float:
        if depth > MAX_DEPTH:
            raise ValueError(f"signs or powers are nested deeper than {MAX_DEPTH}")
        if self.peek() in ("+", "-"):
            sign = self.take()[1]
            value = self.factor(depth + 1)
            return -value if sign == "-" else value
        base = self.atom(depth)
        if self.peek() in ("**", "^"):
            self.take()
            exponent = self.factor(depth + 1)
            result = base**exponent
            return _finite(result)
        return base

    def atom(self, depth: int) -> float:
        kind, text = self.take()
        if kind == "number":
            return float(text)
        if text == "(":
            value = self.expression(depth + 1)
            self.close()
            return value
        if kind == "name" and self.peek() == "(":
            return self.call(text, depth)
        if kind == "name" and text in _CONSTANTS:
            return _CONSTANTS[text]
        if kind == "name":
            raise ValueError(f"{text!r} is unknown; put numbers in place of names")
        raise ValueError(f"{text!r} is not expected there; a number is missing before it")

    def call(self, name: str, depth: int) -> float:
        if name not in _FUNCTIONS:
            raise ValueError(f"no function {name!r}; there are {', '.join(sorted(_FUNCTIONS))}")
        self.take()
        arguments = [self.expression(depth + 1)]
        while self.peek() == ",":
            self.take()
            arguments.append(self.expression(depth + 1))
        self.close()
        try:
            return float(_FUNCTIONS[name](*arguments))
        except ValueError:
            raise ValueError(f"{name} has no value for {arguments}") from None

    def close(self) -> None:
        if self.peek() != ")":
            raise ValueError("a closing parenthesis is missing")
        self.take()
