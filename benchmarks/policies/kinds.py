"""The graphs, as papers on schedulers have them and as people's programs do.

Each maker fills a draft with about `ntasks` tasks for `nslots` threads.  Durations go from
milliseconds to seconds, sizes from bytes to gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isqrt
from random import Random

from benchmarks.policies.graph import Draft, Graph, Shape

KB, MB, GB = 1e3, 1e6, 1e9

Maker = Callable[[Draft, int, int], object]


def merge(draft: Draft, ntasks: int, nslots: int) -> None:
    """Independent tasks with small results, and one sum of them all."""
    work, total = draft.layer("inc"), draft.layer("sum")
    parts = [draft.add(work, 0.1, 100) for _ in range(ntasks)]
    draft.add(total, 0.05, 100, parts)


def tree(draft: Draft, ntasks: int, nslots: int) -> None:
    """A binary reduction."""
    leaf = draft.layer("load")
    draft.reduce("add", [draft.add(leaf, 0.2, MB) for _ in range(ntasks // 2)], 2, 0.05, MB)


def stencil(draft: Draft, ntasks: int, nslots: int) -> None:
    """A grid of which every block needs its neighbours of the step before."""
    ncolumns = 2 * nslots
    row = _each(draft, "load", range(ncolumns), 0.1, MB)
    for _ in range(ntasks // ncolumns - 1):
        layer = draft.layer("step")
        row = [
            draft.add(layer, 0.1, MB, (row[max(0, i - 1)], row[i], row[min(i + 1, ncolumns - 1)]))
            for i in range(ncolumns)
        ]


def crossv(draft: Draft, ntasks: int, nslots: int) -> None:
    """Cross-validation: folds of a data set, models fitted and scored on each, the best of all."""
    nfolds = 5
    whole = draft.add(draft.layer("load"), 1.0, 500 * MB)
    split, hold, fit = draft.layer("split"), draft.layer("hold"), draft.layer("fit")
    score, mean = draft.layer("score"), draft.layer("mean")
    folds = [
        (draft.add(split, 0.1, 400 * MB, [whole]), draft.add(hold, 0.1, 100 * MB, [whole]))
        for _ in range(nfolds)
    ]
    means = []
    for _ in range(ntasks // (2 * nfolds + 1)):
        model_seconds = draft.random.uniform(0.5, 3.0)
        scores = []
        for train, test in folds:
            model = draft.add(fit, model_seconds, 10 * KB, [train])
            scores.append(draft.add(score, 0.1, 100, [model, test]))
        means.append(draft.add(mean, 0.005, 100, scores))
    draft.reduce("max", means, 16, 0.005, 100)


def bag(draft: Draft, ntasks: int, nslots: int) -> None:
    """Map, filter and fold, with a chain for each partition."""
    layers = [draft.layer(name) for name in ("read", "parse", "filter", "count")]
    tips = []
    for _ in range(ntasks // 4):
        weight = draft.random.uniform(0.5, 1.5)
        one = draft.add(layers[0], 0.1 * weight, 20 * MB * weight)
        one = draft.add(layers[1], 0.2 * weight, 50 * MB * weight, [one])
        one = draft.add(layers[2], 0.05 * weight, 10 * MB * weight, [one])
        tips.append(draft.add(layers[3], 0.02 * weight, 10 * KB, [one]))
    draft.reduce("fold", tips, 8, 0.01, 10 * KB)


def blockwise(draft: Draft, ntasks: int, nslots: int) -> None:
    """A block, something done to it twice, its sum; then the sums by a tree."""
    blocks = _each(draft, "random", range(ntasks * 3 // 10), 0.1, 8 * MB)
    for name in ("add", "mul"):
        layer = draft.layer(name)
        blocks = [draft.add(layer, 0.02, 8 * MB, [block]) for block in blocks]
    layer = draft.layer("sum")
    parts = [draft.add(layer, 0.01, 1 * KB, [block]) for block in blocks]
    draft.reduce("sum-agg", parts, 16, 0.01, 1 * KB)


def shuffle(draft: Draft, ntasks: int, nslots: int) -> None:
    """All to all: partitions are loaded, cut, and put together anew; several side by side."""
    width = min(isqrt(ntasks), 48)
    for _ in range(max(1, ntasks // (width * width + 2 * width))):
        load, cut, join = draft.layer("load"), draft.layer("cut"), draft.layer("concat")
        loads = [draft.add(load, 0.3, 48 * MB) for _ in range(width)]
        cuts = [[draft.add(cut, 0.004, MB, [one]) for _ in range(width)] for one in loads]
        for column in range(width):
            draft.add(join, 0.1, 48 * MB, [row[column] for row in cuts])


def fan_out(draft: Draft, ntasks: int, nslots: int) -> None:
    """One large result that all others need."""
    model = draft.add(draft.layer("model"), 1.0, GB)
    _each(draft, "predict", range(ntasks), 0.3, 100 * KB, lambda _: [model])


def group_by(draft: Draft, ntasks: int, nslots: int) -> None:
    """Partitions aggregated by themselves, then by a tree whose results grow, to one table."""
    nparts = ntasks * 4 // 9
    frames = _each(draft, "read-csv", range(nparts), 0.4, 100 * MB)
    parts = _each(draft, "chunk", frames, 0.1, 5 * MB, lambda frame: [frame])
    nbytes = 5 * MB
    while len(parts) > 1:
        layer = draft.layer("combine")
        nbytes = min(nbytes * 1.5, 50 * MB)
        parts = [
            draft.add(layer, 0.05, nbytes, parts[start : start + 8])
            for start in range(0, len(parts), 8)
        ]


def random_graph(draft: Draft, ntasks: int, nslots: int) -> None:
    """Each task needs some of those shortly before it, whichever."""
    layers = [draft.layer(f"do{i}") for i in range(8)]
    window = 4 * nslots
    random = draft.random
    for task in range(ntasks):
        earlier = range(max(0, task - window), max(0, task - window // 2))
        inputs = random.sample(earlier, min(len(earlier), random.choice((1, 1, 2, 3))))
        seconds = 0.005 + random.expovariate(1 / 0.1)
        draft.add(random.choice(layers), seconds, random.expovariate(1 / (2 * MB)), inputs)


def log_normal(draft: Draft, ntasks: int, nslots: int) -> None:
    """One function whose duration varies by its arguments, widely."""
    layer = draft.layer("simulate")
    random = draft.random
    runs = [
        draft.add(layer, min(10.0, random.lognormvariate(-2.0, 1.2)), 100 * KB)
        for _ in range(ntasks * 7 // 8)
    ]
    draft.reduce("stats", runs, 8, 0.01, 100 * KB)


def pareto(draft: Draft, ntasks: int, nslots: int) -> None:
    """A few tasks that take very long among many short ones, each with a follower."""
    first, second = draft.layer("search"), draft.layer("refine")
    random = draft.random
    for _ in range(ntasks // 2):
        seconds = min(5.0, 0.03 * random.paretovariate(1.3))
        found = draft.add(first, seconds, 500 * KB)
        draft.add(second, min(5.0, 0.02 * random.paretovariate(1.3)), 10 * KB, [found])


def size_skewed(draft: Draft, ntasks: int, nslots: int) -> None:
    """Pieces from kilobytes to hundreds of megabytes, each joined with another."""
    random = draft.random
    load, join = draft.layer("load"), draft.layer("join")
    sizes = [min(GB, 10 * KB * random.lognormvariate(4.0, 2.0)) for _ in range(ntasks // 2)]
    pieces = [draft.add(load, 0.05 + size / GB, size) for size in sizes]
    for i, size in enumerate(sizes):
        other = pieces[random.randrange(len(pieces))]
        draft.add(join, 0.1 + size / GB, size / 2, [pieces[i], other])


def few_roots(draft: Draft, ntasks: int, nslots: int) -> None:
    """Fewer than two roots for a thread, over six shared inputs, each the head of a long chain."""
    share = draft.layer("open")
    shared = [draft.add(share, 0.2, 20 * MB) for _ in range(6)]
    roots = _each(draft, "read", range(nslots * 3 // 2), 0.3, 50 * MB, lambda _: shared)
    nlinks = max(1, ntasks // len(roots) - 2)
    tips = roots
    for _ in range(nlinks):
        tips = _each(draft, "step", tips, 0.1, 20 * MB, lambda tip: [tip])
    draft.reduce("sum", tips, 8, 0.02, MB)


def cholesky(draft: Draft, ntasks: int, nslots: int) -> None:
    """A tiled factorisation: a critical path through tasks of four kinds."""
    ntiles = max(4, round((6 * ntasks) ** (1 / 3)) - 1)
    names = ("random", "potrf", "trsm", "syrk", "gemm")
    load, potrf, trsm, syrk, gemm = (draft.layer(name) for name in names)
    tile = {(i, j): draft.add(load, 0.05, 8 * MB) for j in range(ntiles) for i in range(j, ntiles)}
    for k in range(ntiles):
        tile[k, k] = draft.add(potrf, 0.03, 8 * MB, [tile[k, k]])
        for i in range(k + 1, ntiles):
            tile[i, k] = draft.add(trsm, 0.06, 8 * MB, [tile[k, k], tile[i, k]])
        for j in range(k + 1, ntiles):
            tile[j, j] = draft.add(syrk, 0.06, 8 * MB, [tile[j, k], tile[j, j]])
            for i in range(j + 1, ntiles):
                needs = [tile[i, k], tile[j, k], tile[i, j]]
                tile[i, j] = draft.add(gemm, 0.1, 8 * MB, needs)


def transpose(draft: Draft, ntasks: int, nslots: int) -> None:
    """The mean of an array plus its mirror image: each block meets one from afar."""
    side = isqrt(ntasks * 4 // 10)
    load, add, mean = draft.layer("random"), draft.layer("add"), draft.layer("mean")
    blocks = [[draft.add(load, 0.1, 8 * MB) for _ in range(side)] for _ in range(side)]
    sums = [
        draft.add(add, 0.02, 8 * MB, [blocks[i][j], blocks[j][i]])
        for i in range(side)
        for j in range(side)
    ]
    draft.reduce("mean-agg", [draft.add(mean, 0.01, KB, [one]) for one in sums], 16, 0.01, KB)


KINDS: dict[str, Maker] = {
    "merge": merge,
    "tree": tree,
    "stencil": stencil,
    "crossv": crossv,
    "bag": bag,
    "blockwise": blockwise,
    "shuffle": shuffle,
    "fan-out": fan_out,
    "group-by": group_by,
    "random": random_graph,
    "log-normal": log_normal,
    "pareto": pareto,
    "size-skewed": size_skewed,
    "few-roots": few_roots,
    "cholesky": cholesky,
    "transpose": transpose,
}


def make(name: str, shape: Shape, tasks_per_thread: int, seed: int) -> Graph:
    """The graph of this name for that cluster; the same for the same arguments."""
    draft = Draft(Random(f"{name} {shape.nworkers} {seed}"))
    KINDS[name](draft, tasks_per_thread * shape.nslots, shape.nslots)
    return draft.finish(name)


def _each(
    draft: Draft,
    prefix: str,
    items: Iterable[int],
    seconds: float,
    nbytes: float,
    inputs: Callable[[int], Iterable[int]] = lambda _: (),
) -> list[int]:
    layer = draft.layer(prefix)
    return [draft.add(layer, seconds, nbytes, inputs(item)) for item in items]
