"""The command line of the fuzzer: how many cases, of what, from which seed."""

import argparse
import time

from tests.fuzz.campaign import TARGETS, Broken


def main(arguments: list[str] | None = None) -> int:
    """Play the cases; 0 if every promise was kept."""
    options = _parser().parse_args(arguments)
    chosen = [target for target in TARGETS if not options.only or target.name in options.only]
    whole = sum(target.share for target in chosen)
    for target in chosen:
        cases, started = round(options.cases * target.share / whole), time.monotonic()
        try:
            target.play(options.seed, cases)
        except Broken as error:
            print(f"{target.name}: BROKEN\n{error}", flush=True)  # noqa: T201
            return 1
        took = time.monotonic() - started
        told = f"{target.name}: {cases} cases from seed {options.seed} in {took:.0f} s, no promise broken"
        print(told, flush=True)  # noqa: T201
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000, help="in all, shared out among what is fuzzed")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same cases")
    names = [target.name for target in TARGETS]
    parser.add_argument("--only", action="append", choices=names, help="these only; may be given several times")
    return parser
