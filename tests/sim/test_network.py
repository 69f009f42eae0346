"""The network keeps TCP's promises, and no others."""

from shoal.sim.network import Connection, End, Network, Weather
from shoal.sim.streams import Streams
from shoal.sim.world import World

WILD = Weather(delay_seconds=0.01, detour_ratio=0.5, detour_seconds=1.0, notice_seconds=0.1)


class Listener:
    """Somebody at an end, who remembers."""

    def __init__(self, end: End) -> None:
        self.heard: list[int] = []
        self.closed = 0
        end.on_messages = self.heard.append
        end.on_closed = self._closed

    def _closed(self) -> None:
        self.closed += 1


def scene(seed: int = 1) -> tuple[World, Network, Connection, Listener, Listener]:
    world = World()
    network = Network(world, Streams(seed), WILD)
    connection = network.connect("a", "b")
    return world, network, connection, Listener(connection.a), Listener(connection.b)


def let_all_happen(world: World) -> None:
    while world.step():
        pass


def test_order_is_kept_within_a_connection() -> None:
    for seed in range(20):
        world, network, connection, _, b = scene(seed)
        for i in range(50):
            world.at(i * 0.003, connection.a.send, i)
        world.at(0.02, network.stall, "a", "b", 0.9)
        let_all_happen(world)
        assert b.heard == list(range(50))


def test_order_is_free_between_connections() -> None:
    world, network, first, _, heard_first = scene()
    orders = set()
    for _ in range(30):
        second = network.connect("a", "b")
        heard_second = Listener(second.b)
        order: list[str] = []
        first.b.on_messages = lambda _, order=order: order.append("first")  # type: ignore[misc]
        second.b.on_messages = lambda _, order=order: order.append("second")  # type: ignore[misc]
        first.a.send(0)
        second.a.send(0)
        let_all_happen(world)
        orders.add(tuple(order))
        assert heard_second.heard == heard_first.heard == []
    assert orders == {("first", "second"), ("second", "first")}


def test_of_what_was_under_way_when_it_broke_a_first_part_arrives() -> None:
    lengths = set()
    for seed in range(30):
        world, _, connection, a, b = scene(seed)
        for i in range(20):
            world.at(i * 0.01, connection.a.send, i)
        world.at(0.1, connection.break_now)
        let_all_happen(world)
        assert b.heard == list(range(len(b.heard)))
        assert len(b.heard) <= 11
        assert (a.closed, b.closed) == (1, 1)
        lengths.add(len(b.heard))
    assert len(lengths) > 3


def test_each_side_notices_a_break_at_a_time_of_its_own() -> None:
    world, _, connection, _, _ = scene()
    times: list[float] = []
    connection.a.on_closed = connection.b.on_closed = lambda: times.append(world.now)
    connection.break_now()
    let_all_happen(world)
    assert len(set(times)) == 2


def test_what_was_said_before_closing_arrives_before_the_end() -> None:
    world, _, connection, a, b = scene()
    connection.a.send(1)
    connection.a.close()
    connection.a.send(2)
    let_all_happen(world)
    assert (b.heard, b.closed, a.closed) == ([1], 1, 0)


def test_who_is_deaf_speaks_and_hears_everything_in_order_once_it_is_mended() -> None:
    for seed in range(20):
        world, network, connection, a, b = scene(seed)
        for i in range(50):
            world.at(i * 0.003, connection.a.send, i)
        world.at(0.05, network.deafen, connection.b)
        world.at(0.06, connection.b.send, 1)
        world.at(0.1, network.mend, connection.b)
        let_all_happen(world)
        assert a.heard == [1]
        assert b.heard == list(range(50))


def test_healing_mends_who_is_deaf() -> None:
    world, network, connection, _, b = scene()
    network.deafen(connection.b)
    connection.a.send(1)
    connection.a.close()
    let_all_happen(world)
    assert (b.heard, b.closed) == ([], 0)
    network.heal()
    let_all_happen(world)
    assert (b.heard, b.closed) == ([1], 1)


def test_what_was_said_to_who_is_deaf_is_lost_as_the_connection_breaks() -> None:
    world, network, connection, a, b = scene()
    network.deafen(connection.b)
    connection.a.send(1)
    world.at(5.0, connection.break_now)
    let_all_happen(world)
    network.mend(connection.b)
    let_all_happen(world)
    assert (b.heard, b.closed, a.closed) == ([], 1, 1)


def test_a_process_that_is_gone_notices_nothing() -> None:
    world, _, connection, a, b = scene()
    connection.b.send(1)
    connection.a.drop()
    let_all_happen(world)
    assert (a.heard, a.closed, b.closed) == ([], 0, 1)


def test_a_cut_ends_by_itself_and_by_healing() -> None:
    world, network, _, _, _ = scene()
    network.cut("a", "b", 5.0)
    assert network.is_cut("b", "a")
    world.at(6.0, network.cut, "a", "b", 9.0)
    world.step()
    assert network.is_cut("a", "b")
    network.heal()
    assert not network.is_cut("a", "b")


def test_time_never_goes_back_and_ties_keep_their_order() -> None:
    world = World()
    seen: list[tuple[float, int]] = []
    for i, at in enumerate((3.0, 1.0, 1.0, 2.0)):
        world.at(at, lambda i=i: seen.append((world.now, i)))  # type: ignore[misc]
    world.at(2.5, lambda: world.at(0.5, lambda: seen.append((world.now, 9))))
    let_all_happen(world)
    assert seen == [(1.0, 1), (1.0, 2), (2.0, 3), (2.5, 9), (3.0, 0)]


def test_the_background_does_not_count_as_something_going_on() -> None:
    world = World()
    world.at(1.0, lambda: None, background=True)
    assert world.nforeground == 0
    world.at(1.0, lambda: None)
    assert world.nforeground == 1
    let_all_happen(world)
    assert world.nforeground == 0
