"""Scenarios on a loop of their own."""

import asyncio


def play(scenario):
    """Play it on a loop of its own, within a time that it never takes."""

    async def limited():
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(limited())
