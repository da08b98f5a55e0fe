"""How PostgreSQL carries out the statements that production runs, caught in the act."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as the driver got it."""

    sql: str
    parameters: Any


@contextmanager
def caught(engine: AsyncEngine) -> Iterator[list[Statement]]:
    """Catch every statement that is run in the block."""
    statements: list[Statement] = []

    def catch(_: object, __: object, sql: str, parameters: Any, *___: object) -> None:
        statements.append(Statement(sql, parameters))

    event.listen(engine.sync_engine, "before_cursor_execute", catch)
    try:
        yield statements
    finally:
        event.remove(engine.sync_engine, "before_cursor_execute", catch)


async def nodes(conn: AsyncConnection, statement: Statement) -> list[Mapping[str, Any]]:
    """Return every step of the plan for a statement."""
    answer = await conn.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement.sql}", statement.parameters)
    plan = answer.scalar_one()
    return list(_walk((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]))


def _walk(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)
