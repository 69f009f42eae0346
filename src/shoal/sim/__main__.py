"""`python -m shoal.sim`: run seeds, say which fail and how, and make the failures smaller."""

import cProfile
import pstats
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Final

from shoal.sim.plan import from_text
from shoal.sim.run import Verdict, run
from shoal.sim.shrink import shrink
from shoal.sim.swarm import expand

CHUNK: Final = 50
"""Seeds that one process takes at a time."""

SHOWN_MAX: Final = 5
"""Failures that are told in full."""


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line asks for; the exit code is 1 if any seed failed."""
    options = _parser().parse_args(arguments)
    if options.profile:
        return _profile(options)
    if options.plan is not None:
        return _run_plan(options)
    failures: list[Verdict] = []
    nsteps = nseeds = 0
    for verdict in _verdicts(options):
        nseeds += 1
        nsteps += verdict.nsteps
        if not verdict.is_good:
            failures.append(verdict)
        if not options.quiet and nseeds % 100 == 0:
            text = f"\r{nseeds} of {options.seeds} seeds, {len(failures)} failures "
            print(text, end="", file=sys.stderr, flush=True)
    if not options.quiet:
        print("\r", end="", file=sys.stderr)
    _tell(failures, options)
    print(f"{nseeds} seeds, {nsteps} events, {len(failures)} failures")
    return 1 if failures else 0


def check(seed: int, *, checks_all: bool = False) -> Verdict:
    """Run one seed; every tenth looks at everything, and so does a second run of what fails."""
    verdict = run(expand(seed), checks_all=checks_all or seed % 10 == 0)
    if not verdict.is_good:
        closer = run(expand(seed), checks_all=True)
        return verdict if closer.is_good else closer
    return verdict


def _check_chunk(first: int, stop: int, checks_all: bool) -> list[Verdict]:
    return [check(seed, checks_all=checks_all) for seed in range(first, stop)]


def _verdicts(options: Namespace) -> Iterator[Verdict]:
    stop = options.start + options.seeds
    firsts = range(options.start, stop, CHUNK)
    stops = [min(first + CHUNK, stop) for first in firsts]
    full = [options.full] * len(stops)
    if options.jobs == 1:
        yield from chain.from_iterable(map(_check_chunk, firsts, stops, full))
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        yield from chain.from_iterable(pool.map(_check_chunk, firsts, stops, full))


def _tell(failures: list[Verdict], options: Namespace) -> None:
    """Each kind of failure once, in full; the others by seed."""
    if not failures:
        return
    kinds = Counter(failure.invariant for failure in failures)
    shown: dict[str, Verdict] = {}
    for failure in failures:
        shown.setdefault(failure.invariant, failure)
    for failure in list(shown.values())[: options.shown]:
        _tell_one(failure, options)
    for kind, count in kinds.most_common():
        seeds = [str(f.plan.seed) for f in failures if f.invariant == kind][:10]
        print(f"{count} times {kind!r}: seeds {', '.join(seeds)}")


def _tell_one(failure: Verdict, options: Namespace) -> None:
    print(f"--- seed {failure.plan.seed}: {failure.invariant}\n{failure.sentence}")
    print(f"{failure.plan!r}\n")
    print("\n".join(line[: options.columns] for line in failure.story))
    if options.no_shrink:
        return
    smaller = shrink(failure)
    print(f"--- seed {failure.plan.seed}, made smaller:\n{smaller.sentence}")
    print(f"{smaller.plan!r}\n")
    print("\n".join(line[: options.columns] for line in smaller.story) + "\n")


def _profile(options: Namespace) -> int:
    profile = cProfile.Profile()
    verdicts = profile.runcall(
        _check_chunk, options.start, options.start + options.seeds, options.full
    )
    pstats.Stats(profile).sort_stats("tottime").print_stats(30)
    return 0 if all(verdict.is_good for verdict in verdicts) else 1


def _run_plan(options: Namespace) -> int:
    verdict = run(from_text(Path(options.plan).read_text()), checks_all=True)
    _tell([] if verdict.is_good else [verdict], options)
    print(f"1 plan, {verdict.nsteps} events, {int(not verdict.is_good)} failures")
    return int(not verdict.is_good)


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="python -m shoal.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--full", action="store_true", help="look at everything after each step")
    parser.add_argument("--no-shrink", action="store_true", help="don't make failures smaller")
    parser.add_argument("--shown", type=int, default=SHOWN_MAX, help="failures told in full")
    parser.add_argument("--columns", type=int, default=300, help="of the story")
    parser.add_argument("--plan", help="a file with one plan, as a failure is told, instead")
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    parser.add_argument("--quiet", action="store_true", help="the summary only")
    return parser


if __name__ == "__main__":
    sys.exit(main())
