"""Any order of what users do and schedulers say leaves the client consistent."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenes.client.scene import Scene

KEYS = ("a", "b", "c")
DEEDS = st.one_of(
    st.tuples(st.just("submit"), st.sampled_from(KEYS)),
    st.tuples(st.just("want"), st.sampled_from(KEYS)),
    st.tuples(st.just("release"), st.integers(0, 20)),
    st.tuples(st.just("cancel"), st.integers(0, 20)),
    st.tuples(st.just("depend"), st.integers(0, 20)),
    st.tuples(st.sampled_from(["finish", "far", "err", "lose", "drop"]), st.integers(1, 20)),
    st.tuples(st.just("take"), st.just(0)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(DEEDS, max_size=40))
def test_invariants_hold_and_everything_said_is_let_go_of(deeds):
    scene = Scene()
    futures = []  # one entry for each future, as a user would hold them
    said: list[str] = []
    for what, about in deeds:
        if what == "submit":
            futures += scene.submit(about)
        elif what == "want":
            futures.append(scene.want(about))
        elif what == "depend" and futures:
            futures += scene.submit(f"on-{about}", needs=[futures[about % len(futures)]])
        elif what == "release" and futures:
            scene.release(futures.pop(about % len(futures)))
        elif what == "cancel" and futures:
            scene.cancel(futures[about % len(futures)])
        elif what == "finish":
            scene.finish(about)
        elif what == "far":
            scene.finish(about, value=None, holders=["w"])
        elif what in ("err", "lose", "drop"):
            getattr(scene, what)(about)
        elif what == "take":
            said += scene.take()
        scene.look()
    scene.release(*futures)
    said += scene.take()
    assert not scene.machine.records
    assert not scene.machine.by_number
    assert all(record.nfutures == 0 for record in futures)
    released = [
        number for text in said if text.startswith("release") for number in text.split()[1:]
    ]
    assert len(released) == len(set(released)), "a want was released twice"
