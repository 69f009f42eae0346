"""The order of a graph: inputs first, and few results alive at once."""

import heapq
import random

import pytest

from shoal.client.ordering import order_tasks


def ordered(dependencies, roots=None, needed=None):
    n = len(dependencies)
    roots = [n - 1] if roots is None else roots
    heights = [0] * n
    for i, needs in enumerate(dependencies):
        heights[i] = 1 + max([heights[j] for j in needs], default=0)
    return order_tasks(dependencies, roots, range(n) if needed is None else needed, heights)


def peak(dependencies, order, nslots=8):
    """Most results alive at once, if `nslots` tasks run at a time, the first of the order first."""
    n = len(dependencies)
    place = {i: at for at, i in enumerate(order)}
    users = [[] for _ in range(n)]
    for i, needs in enumerate(dependencies):
        for j in needs:
            users[j].append(i)
    nmissing, nusers = [len(needs) for needs in dependencies], [len(them) for them in users]
    ready = [(place[i], i) for i in range(n) if not nmissing[i]]
    heapq.heapify(ready)
    alive = highest = 0
    while ready:
        now = [heapq.heappop(ready)[1] for _ in range(min(nslots, len(ready)))]
        alive += len(now)
        highest = max(highest, alive)
        for i in now:
            for j in dependencies[i]:
                nusers[j] -= 1
                alive -= not nusers[j]
            for k in users[i]:
                nmissing[k] -= 1
                if not nmissing[k]:
                    heapq.heappush(ready, (place[k], k))
    return highest


def transposed_mean(n):
    """n x n blocks, each added to its mirror image, summed up in squares of 4 x 4."""
    dependencies = [[] for _ in range(n * n)]
    level = {}
    for i in range(n):
        for j in range(n):
            dependencies.append(sorted({i * n + j, j * n + i}))
            level[i, j] = len(dependencies) - 1
    while len(level) > 1:
        above = {}
        for (i, j), place in level.items():
            above.setdefault((i // 4, j // 4), []).append(place)
        level = {}
        for at, places in above.items():
            dependencies.append(places)
            level[at] = len(dependencies) - 1
    return dependencies


def two_stage_shuffle(n):
    """n x n inputs that are split and joined in groups of n, twice, and then counted."""
    dependencies = [[] for _ in range(n * n)]
    pieces = list(range(n * n))
    for stage in range(2):
        joined = [0] * (n * n)
        for group in range(n):
            members = [group * n + k if stage == 0 else k * n + group for k in range(n)]
            splits = {}
            for source in members:
                for target in members:
                    dependencies.append([pieces[source]])
                    splits[source, target] = len(dependencies) - 1
            for target in members:
                dependencies.append([splits[source, target] for source in members])
                joined[target] = len(dependencies) - 1
        pieces = joined
    dependencies.append(pieces)
    return dependencies


def test_the_deepest_input_comes_first():
    assert ordered([[], [], [1], [2], [0, 3]]) == [1, 2, 3, 0, 4]


def test_of_equal_inputs_the_first_comes_first():
    assert ordered([[], [], [], [0, 1, 2]]) == [0, 1, 2, 3]


def test_what_lets_go_of_a_result_goes_at_once():
    """2 and 3 both need 0 and 1; 3 is wanted last, but lets go of them."""
    dependencies = [[], [], [0, 1], [0, 1], [2], [4], [5], [], [7], [8], [6, 9, 3]]
    order = ordered(dependencies)
    assert order[-1] == 10
    assert order.index(3) < order.index(7)


def test_mirror_images_are_added_together():
    """A plain depth-first order keeps half of the blocks."""
    dependencies = transposed_mean(32)
    assert peak(dependencies, ordered(dependencies)) < 100


def test_a_group_of_a_shuffle_is_finished_before_the_next_is_begun():
    """A plain depth-first order keeps the inputs of every group until all outputs are made."""
    dependencies = two_stage_shuffle(12)
    assert peak(dependencies, ordered(dependencies)) <= 2.5 * 12 * 12


class Counted(list):
    """A list that counts how often it is looked into."""

    nlooks = 0

    def __getitem__(self, place):
        self.nlooks += 1
        return super().__getitem__(place)


def test_a_group_of_a_shuffle_with_one_odd_dependent_takes_linear_time():
    """The last to need the first input needs other things as well, so nobody is a companion."""
    n = 40
    dependencies = Counted([[] for _ in range(n)])
    for _ in range(n):
        pieces = [len(dependencies) + source for source in range(n)]
        dependencies += [[source] for source in range(n)]
        dependencies.append(pieces)
    outputs = list(range(2 * n, len(dependencies), n + 1))
    dependencies.append([0, outputs[-1]])
    order = ordered(dependencies, [*outputs, len(dependencies) - 1])
    assert len(order) == len(dependencies)
    assert dependencies.nlooks < 8 * 2 * n * n


def test_neighbours_that_share_some_inputs_are_made_row_by_row():
    """Overlap: blocks of one row are kept, not those of all."""
    n = 30
    dependencies = [[] for _ in range(n * n)]
    for i in range(n):
        for j in range(n):
            near = [(i + a, j + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
            inside = [(a, b) for a, b in near if 0 <= a < n and 0 <= b < n]
            dependencies.append([a * n + b for a, b in inside])
    dependencies.append(list(range(n * n, 2 * n * n)))
    order = ordered(dependencies)
    blocks = [i for i in order if i < n * n]
    ahead = max(at - order.index(i + n * n) // 2 for at, i in enumerate(blocks))
    assert ahead < 4 * n


@pytest.mark.parametrize("seed", range(20))
def test_every_needed_task_comes_once_and_after_its_inputs(seed):
    choose = random.Random(seed)
    n = 400
    dependencies = [
        sorted(choose.sample(range(max(0, i - 40), i), min(i, choose.choice([0, 1, 1, 2, 5]))))
        for i in range(n)
    ]
    roots = choose.sample(range(n), 20)
    needed, stack = set(), list(roots)
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += dependencies[i]
    order = ordered(dependencies, roots, sorted(needed))
    assert sorted(order) == sorted(needed)
    place = {i: at for at, i in enumerate(order)}
    assert all(place[j] < place[i] for i in order for j in dependencies[i])


def test_what_is_made_already_counts_as_there():
    assert ordered([[], [0], [1]], needed=[2]) == [2]


def test_a_chain_of_a_hundred_thousand_is_no_problem():
    n = 100_000
    assert ordered([[i - 1] if i else [] for i in range(n)]) == list(range(n))
