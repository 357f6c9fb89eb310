"""What can happen to the machines of a fleet and to its servers, by chance, under virtual time."""

import asyncio

from fleet_world import LEASE, FleetWorld, Machine


async def three(world: FleetWorld) -> None:
    for _ in range(3):
        await world.join()


class Faults:
    """What can happen to machines and servers, by chance."""

    def __init__(self, world: FleetWorld) -> None:
        self.world, self.chance = world, world.chance

    async def play(self, number: int) -> None:
        await three(self.world)
        acts = [self.kill, self.join, self.leave, self.cut_off, self.pause]
        acts += [self.go_away, self.lose_answers, self.lose_objects]
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                await asyncio.sleep(self.chance.uniform(0.1, LEASE))
                group.create_task(self.chance.choice(acts)())
        if not self.world.running_machines:
            await self.world.join()

    def machine(self) -> Machine | None:
        running = self.world.running_machines
        return self.chance.choice(running) if running else None

    async def kill(self) -> None:
        if machine := self.machine():
            machine.kill()

    async def join(self) -> None:
        await self.world.join(speed=self.chance.choice((1 / 1.4, 1.0, 1.4)))

    async def leave(self) -> None:
        if machine := self.machine():
            machine.leave()

    async def cut_off(self) -> None:
        """From the servers; it goes on with what it has."""
        if machine := self.machine():
            machine.link.cut = True
            await asyncio.sleep(self.chance.uniform(0.2, 3) * LEASE)
            machine.link.cut = False

    async def pause(self) -> None:
        """It sleeps past its lease: no word of it, and then its clock has jumped."""
        if machine := self.machine():
            machine.link.cut = True
            machine.jumped[0] += 2 * LEASE
            await asyncio.sleep(2 * LEASE)
            machine.link.cut = False

    async def go_away(self) -> None:
        """A server is restarted."""
        which = self.chance.randrange(len(self.world.away))
        self.world.away[which] = True
        await asyncio.sleep(self.chance.uniform(0.1, 2) * LEASE)
        self.world.away[which] = False

    async def lose_answers(self) -> None:
        if machine := self.machine():
            machine.link.lossy = 0.3
            await asyncio.sleep(self.chance.uniform(0.5, 2) * LEASE)
            machine.link.lossy = 0.0

    async def lose_objects(self) -> None:
        self.world.objects_down = True
        await asyncio.sleep(self.chance.uniform(0.1, 1) * LEASE)
        self.world.objects_down = False
