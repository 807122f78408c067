#!/usr/bin/env python3
"""Moves single weights of one detector's table as long as attacks gain, with nothing lost on any list or set.

    portcullis evaluate --features attacks.tsv --label attack CORPORA/attack
    portcullis evaluate --features honest.tsv --label benign CORPORA/benign CORPORA/lifelike
    tools/semantic/refine.py --class xss --weights crates/portcullis-semantic/weights --features attacks.tsv honest.tsv

Training from the severities on (train.py) is free to trade one list for another. This begins with the table as it is and takes one
step at a time: a weight of a kind, up or down by STEP, never below zero and never more than REACH from where it began. A step stays
only if

* no set of honest requests has one more request flagged than before (each set and tier by itself),
* no list of attacks has one attack less, and all lists together have more, each source counted by the root of its size.

With --folds N the same is learned without each Nth of the sources (attacks) and sets (honest) and asked about what was left out:
only what holds there is worth a change of the table. Prints the steps; the table is changed by hand. Standard library only.
"""
import argparse
import os
import zlib
from collections import defaultdict, Counter

STEP = 0.25
PRIORS = {"CRITICAL": 4.0, "ERROR": 2.5, "WARNING": 1.2, "NOTICE": 0.3}
MENTIONED = 0.1
MENTIONS_MAX = 2.5


def table(path, kinds):
    weights = {"bias": -3.5, "threshold.balanced": 0.0}
    if os.path.exists(path):
        for line in open(path, encoding="utf-8"):
            if not line.startswith("#") and line.strip():
                name, value = line.split()
                weights[name] = float(value)
    for kind, severity in kinds.items():
        weights.setdefault(kind, PRIORS[severity])
        weights.setdefault(kind + "~", PRIORS[severity] * MENTIONED)
    return weights


def value(weights, row):
    live = mentioned = 0.0
    for name in row:
        if name.endswith("~"):
            mentioned += weights.get(name, 0.0)
        else:
            live += weights.get(name, 0.0)
    return weights["bias"] + live + min(mentioned, MENTIONS_MAX) - weights["threshold.balanced"]


def read(paths):
    kinds, samples = defaultdict(dict), {}
    for path in paths:
        for line in open(path, encoding="utf-8"):
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "#kind":
                kinds[fields[1]][fields[2]] = fields[3]
                continue
            if fields[4].startswith("#"):
                continue
            number, label, group, source, cls, features = fields
            if int(label):
                key = (group, source.split("#")[0])
            else:
                key = (group, source.split(" ")[0] if group.startswith("synthetic") else "")
            sample = samples.setdefault((path, number), [int(label), key, defaultdict(list)])
            sample[2][cls].append(tuple(f for f in features.split() if not f.startswith("at:")))
    return kinds, list(samples.values())


def refine(cls, samples, weights, others, reach):
    """The steps that were taken, in order. `others`: for each sample whether another class flags it, so that it is decided."""
    begun = dict(weights)
    items = [(s[0], s[1], tuple(sorted(set(s[2][cls])))) for s, other in zip(samples, others) if cls in s[2] and not other]
    merged = Counter(items)
    sizes = Counter(s[1] for s in samples if s[0])
    rows = [(label, key, rows, count) for (label, key, rows), count in merged.items()]
    by_kind = defaultdict(list)
    for at, (_, _, group, _) in enumerate(rows):
        for name in {n for row in group for n in row}:
            by_kind[name].append(at)
    on = lambda at: any(value(weights, row) >= 0 for row in rows[at][2])
    state = [on(at) for at in range(len(rows))]
    moved = []
    names = sorted(n for n in by_kind if n in weights)
    while True:
        best = None
        for name in names:
            for step in (STEP, 2 * STEP, -STEP):
                now = round(weights[name] + step, 2)
                if now < 0 or abs(now - begun[name]) > reach + 1e-9:
                    continue
                before = weights[name]
                weights[name] = now
                gain, change, lost = 0.0, Counter(), Counter()
                for at in by_kind[name]:
                    is_on = on(at)
                    if is_on != state[at]:
                        label, key, _, count = rows[at]
                        sign = 1 if is_on else -1
                        if label:
                            gain += sign * count * sizes[key] ** -0.5
                            lost[key[0]] += sign * count
                        else:
                            change[key] += sign * count
                weights[name] = before
                fits = all(c <= 0 for c in change.values()) and all(c >= 0 for c in lost.values())
                freed = -sum(change.values())
                score = gain + 0.02 * freed - 0.001 * abs(now - begun[name])
                if fits and (gain > 1e-9 or freed > 0 and gain >= 0) and (best is None or score > best[0]):
                    best = (score, name, now, sum(c for c in lost.values()), freed)
        if not best:
            return moved
        _, name, now, gained, freed = best
        moved.append((name, weights[name], now, gained, freed))
        weights[name] = now
        for at in by_kind[name]:
            state[at] = on(at)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--class", dest="cls", required=True)
    parser.add_argument("--weights", required=True, help="the folder of the tables")
    parser.add_argument("--features", nargs="+", required=True)
    parser.add_argument("--reach", type=float, default=1.0, help="how far a weight may move")
    parser.add_argument("--folds", type=int, default=0, help="cross-validate over so many parts of the sources")
    args = parser.parse_args()
    kinds, samples = read(args.features)
    classes = {cls for s in samples for cls in s[2]} | set(kinds)
    tables = {cls: table(f"{args.weights}/{cls}.tsv", kinds[cls]) for cls in classes}

    def flagged(sample, cls):
        return any(value(tables[cls], row) >= 0 for row in sample[2].get(cls, ()))

    others = [any(flagged(s, cls) for cls in s[2] if cls != args.cls and cls not in ("leak", "redirect")) for s in samples]
    if args.folds:
        total = Counter()
        for fold in range(args.folds):
            held = lambda s: zlib.crc32(repr(s[1]).encode()) % args.folds == fold
            weights = dict(tables[args.cls])
            keep = [(s, o) for s, o in zip(samples, others) if not held(s)]
            refine(args.cls, [s for s, _ in keep], weights, [o for _, o in keep], args.reach)
            for s, o in zip(samples, others):
                if held(s) and not o and args.cls in s[2]:
                    was = any(value(tables[args.cls], row) >= 0 for row in s[2][args.cls])
                    now = any(value(weights, row) >= 0 for row in s[2][args.cls])
                    total[s[0], "before"] += was
                    total[s[0], "after"] += now
                    if was != now:
                        total[s[0], "gained" if now else "lost", s[1][0]] += 1
        for what, count in sorted(total.items(), key=str):
            print("left out:", "attacks" if what[0] else "honest", *what[1:], count)
        return
    weights = dict(tables[args.cls])
    for name, before, now, gained, freed in refine(args.cls, samples, weights, others, args.reach):
        print(f"{name}\t{before} -> {now}\t{gained} attacks, {freed} honest less")


if __name__ == "__main__":
    main()
