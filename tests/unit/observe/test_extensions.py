"""What is shown of locks, queues and the like beside a scheduler."""

import asyncio

from shoal import Client, Scheduler
from shoal.client.coordination import Event, Queue, Semaphore, Variable


def test_what_clients_agree_on_is_shown_and_what_programs_keep_stays():
    async def scenario():
        async with (
            Scheduler(protocol="inproc") as scheduler,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            shown = scheduler.extensions
            assert shown["semaphores"].leases["s"] == []
            semaphore = await Semaphore(max_leases=2, name="s")
            await semaphore.acquire()
            assert shown["semaphores"].leases["s"] == [client.id]
            assert shown["semaphores"].max_leases == {"s": 2}
            await semaphore.release()
            await client.scheduler.echo()  # nobody answers a release
            assert shown["semaphores"].leases["s"] == []
            await Event("e").set()
            assert shown["events"]._events == {"e": True}
            await Event("e").clear()
            assert not shown["events"]._events
            await (await Queue("q")).put(1)
            assert shown["queues"].queues == {"q": 1}
            await Variable("v").set(1)
            assert shown["variables"].variables == ["v"]
            await client.publish_dataset(1, name=("a", 1))
            assert list(shown["publish"].datasets) == [("a", 1)]
            scheduler.extensions["mine"] = 3
            assert scheduler.extensions["mine"] == 3

    asyncio.run(scenario())
