"""Inputs: from whom they are fetched, and what happens if they don't come."""

from tests.scenes.worker.scene import Scene


def test_a_run_waits_for_its_inputs_and_the_copies_are_reported(scene: Scene) -> None:
    """y needs x, which A holds."""
    scene.run("y#1", x="A")
    assert scene.take() == ["ask A for x"]
    assert scene.arrive("A", "x") == "x"
    assert scene.take() == ["start y#1", "say added x"]


def test_inputs_that_come_along_are_not_fetched_and_not_kept(scene: Scene) -> None:
    """x is small."""
    scene.run("y#1", x="=")
    assert scene.take() == ["start y#1"]
    scene.finish("y#1")
    assert scene.inventory() == "1: y"


def test_a_fetch_is_shared_by_all_that_wait_for_it(scene: Scene) -> None:
    """y and z need x; a third one comes when it is here."""
    scene.run("y#1", x="A")
    scene.run("z#1", x="A")
    assert scene.take() == ["ask A for x"]
    scene.arrive("A", "x")
    assert scene.take() == ["start y#1 z#1", "say added x"]
    scene.run("w#1", x="A")
    assert scene.take() == ["start w#1"]


def test_results_of_one_peer_are_asked_for_together(scene: Scene) -> None:
    """Three inputs, two of them at A; the third at both: we are talking to A anyway."""
    scene.run("y#1", p="A", q="A", r="B A")
    assert scene.take() == ["ask A for p q r"]


def test_requests_are_bounded_by_bytes_and_by_number() -> None:
    """15 bytes a request, two requests a peer, three in all; the rest waits its turn."""
    scene = Scene(transfer_bytes_max=15, transfers_per_peer_max=2, transfers_max=3)
    scene.run("y#1", a="A", b="A", c="A", d="B", e="B")
    assert scene.take() == ["ask A for a", "ask B for d", "ask A for b"]
    scene.arrive("B", "d")
    assert scene.take() == ["ask B for e", "say added d"]
    scene.arrive("A", "a")
    assert scene.take() == ["ask A for c", "say added a"]


def test_a_holder_that_lacks_it_is_followed_by_the_next(scene: Scene) -> None:
    """A has dropped x, B has it."""
    scene.run("y#1", x="A B")
    scene.arrive("A")
    assert scene.take() == ["ask A for x", "ask B for x"]
    scene.arrive("B", "x")
    assert scene.take() == ["start y#1", "say added x"]


def test_what_no_holder_gives_ends_the_run(scene: Scene) -> None:
    """A is out of reach, B lacks it; nothing else is done for y any more."""
    scene.run("y#1", x="A B", z="C")
    assert scene.take() == ["ask A for x", "ask C for z"]
    scene.unreachable("A")
    assert scene.take() == ["ask B for x"]
    scene.arrive("B")
    assert scene.take() == ["say y#1 lacks x, A out of reach"]
    assert scene.arrive("C", "z") == ""
    assert scene.take() == []


def test_a_peer_out_of_reach_is_not_asked_for_what_was_queued_for_it() -> None:
    """One request at a time; the second input goes straight to the other holder."""
    scene = Scene(transfers_per_peer_max=1, transfer_tasks_max=1)
    scene.run("y#1", a="A", b="A B")
    assert scene.take() == ["ask A for a"]
    scene.unreachable("A")
    assert scene.take() == ["say y#1 lacks a, A out of reach"]
    scene.run("z#1", b="A B")
    assert scene.take() == ["ask A for b"]


def test_an_input_said_to_be_held_that_is_not_ends_the_run(scene: Scene) -> None:
    """It was freed just now, and the scheduler did not know yet."""
    scene.run("y#1", x=None)
    assert scene.take() == ["say y#1 lacks x"]


def test_an_input_that_nobody_holds_ends_the_run(scene: Scene) -> None:
    """No holders at all, or only ourselves, who lack it."""
    scene.run("y#1", x="")
    scene.run("z#1", x="me")
    assert scene.take() == ["say y#1 lacks x", "say z#1 lacks x"]


def test_an_input_that_can_not_be_transferred_fails_the_run(scene: Scene) -> None:
    """It does not pickle: no other holder would fare better."""
    scene.run("y#1", x="A B", z="C")
    scene.arrive("A", failed="x")
    assert scene.take() == ["ask A for x", "ask C for z", "say y#1 failed"]


def test_two_inputs_that_fail_together_fail_the_run_once(scene: Scene) -> None:
    """One answer of one peer is the end of both."""
    scene.run("y#1", x="A", z="A")
    scene.take()
    scene.arrive("A", failed="xz")
    assert scene.take() == ["say y#1 failed"]


def test_a_result_computed_here_serves_those_that_were_fetching_it(scene: Scene) -> None:
    """x is under way from A, and finishes here first; the late copy is for nobody."""
    scene.run("y#1", x="A")
    scene.run("x#5")
    assert scene.take() == ["ask A for x", "start x#5"]
    assert scene.finish("x#5") == [True]
    assert scene.take() == ["start y#1", "say x#5 finished"]
    assert scene.arrive("A", "x") == ""
    assert scene.take() == []


def test_a_new_holder_is_tried_before_giving_up(scene: Scene) -> None:
    """A second run knows another holder."""
    scene.run("y#1", x="A")
    scene.run("z#1", x="B")
    scene.arrive("A")
    assert scene.take() == ["ask A for x", "ask B for x"]


def test_copies_are_acquired_and_reported(scene: Scene) -> None:
    """x from A, s comes along, h is held already, g is to be had nowhere."""
    scene.put("h")
    assert scene.take() == ["say added h"]
    scene.acquire(x="A", s="=", h="B", g="")
    assert scene.take() == ["load s", "ask A for x", "say gone g"]
    scene.put("s")
    scene.arrive("A", "x")
    assert scene.take() == ["say added s", "say added x"]


def test_a_copy_that_nobody_gives_is_said_to_be_gone(scene: Scene) -> None:
    """So that the scheduler need not wait for it."""
    scene.acquire(x="A")
    scene.arrive("A")
    assert scene.take() == ["ask A for x", "say gone x"]
