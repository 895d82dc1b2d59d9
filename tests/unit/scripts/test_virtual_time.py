import asyncio

from kopt.testing.virtual_time import LOOK_EVERY_S, run_in_virtual_time


async def slept(*seconds):
    for each in seconds:
        await asyncio.sleep(each)
    return asyncio.get_running_loop().time()


def test_sleeping_takes_virtual_time_only():
    assert run_in_virtual_time(slept(3600.0, 1800.0)) == 5400.0


def test_work_takes_virtual_time_where_it_counts():
    worked_s = [0.0]

    async def work():
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        worked_s[0] += 5.0
        looked = asyncio.Event()
        # The loop looks at the clock of work when enough real time has gone by.
        while loop.time() == began_s:
            await asyncio.sleep(0)
        looked.set()
        return loop.time() - began_s

    assert run_in_virtual_time(work(), work_s=lambda: worked_s[0]) == 5.0
    assert LOOK_EVERY_S < 0.1
