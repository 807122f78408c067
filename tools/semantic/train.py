#!/usr/bin/env python3
"""Trains the weights of one detector from the features that `portcullis evaluate --features FILE` wrote.

    portcullis evaluate --features /tmp/features.tsv CORPORA/attack/sqli.jsonl CORPORA/benign
    tools/semantic/train.py --class sqli --features /tmp/features.tsv > crates/portcullis-semantic/weights/sqli.tsv

Logistic regression over the features of each value, with three twists:

* The prior of a weight is what the kind's severity says, not zero: data moves a weight only as far as it speaks.
* Neither kinds nor contexts count against an attack (their weights are at or above zero): nobody may hide one by adding
  something to it.
* Sources count by the square root of their size, so that one long list does not decide alone.

The thresholds are the lowest ones that keep every benign set within its limit (LIMITS). Standard library only.
"""

import argparse
import math
import sys
from collections import defaultdict

PRIORS = {"CRITICAL": 4.0, "ERROR": 2.5, "WARNING": 1.2, "NOTICE": 0.3}
MENTIONED = 0.1
BIAS = -3.5
PRIOR_STRENGTH = 0.3
# How far a context may move the score, never below zero: nobody may hide an attack by where it is put. Where attacks stood when
# they were recorded is not known (bare values are placed somewhere by the evaluation), so places do not count at all.
CONTEXT_BOUNDS = {"at:": (0.0, 0.0)}
# Share of samples of a benign set that may be flagged: set or (set, tier), balanced, strict.
LIMITS = [
    ("synthetic-requests.jsonl", ("easy",), 0.0005, 0.003),
    # Some of these search for a whole payload ("what does ' or 1=1 -- mean"), in fields that are not for text: no threshold may be
    # so high that they pass.
    ("synthetic-requests.jsonl", ("medium",), 0.008, 0.012),
    ("synthetic-requests.jsonl", ("hard",), 0.012, 0.02),
    ("english-text.jsonl", None, 0.0008, 0.003),
    ("markdown-posts.jsonl", None, 0.0009, 0.004),
    # Full requests of clients, mails, notebooks, tutorials.
    ("requests.jsonl", None, 0.0015, 0.006),
    ("wcp-legit-query.jsonl", None, 0.0009, 0.003),
    ("access-log-apache.jsonl", None, 0.0005, 0.003),
    ("http-headers-hpack.jsonl", None, 0.001, 0.003),
    ("httpparams-values.jsonl", None, 0.0005, 0.003),
    ("user-agents.jsonl", None, 0.0004, 0.003),
    ("crawler-user-agents.jsonl", None, 0.0004, 0.003),
]


class Sample:
    __slots__ = ("label", "group", "source", "rows")

    def __init__(self, label, group, source):
        self.label, self.group, self.source, self.rows = label, group, source, []


def read(paths, wanted, attack_sets):
    kinds, samples = {}, {}
    for path in paths:
        lines = open(path, encoding="utf-8")
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            if fields[0] == "#kind":
                if fields[1] == wanted:
                    kinds[fields[2]] = PRIORS.get(fields[3], 4.0)
                continue
            number, label, group, source, cls, features = fields
            label = int(label)
            if label and attack_sets and not any(name in group for name in attack_sets):
                continue
            sample = samples.setdefault((path, number), Sample(label, group, source))
            if cls == wanted:
                sample.rows.append(tuple(features.split()))
    return kinds, list(samples.values())


def prior_of(name, kinds):
    if name == "bias":
        return BIAS
    if name.endswith("~"):
        return kinds.get(name[:-1], 0.0) * MENTIONED
    return kinds.get(name, 0.0)


def clamp(name, weight, caps, prior, reach, mention_cap=None):
    weight = min(weight, caps.get(name.rstrip("~"), weight))
    if name.endswith("~") and mention_cap is not None:
        weight = min(weight, mention_cap)
    if reach is not None and not name.startswith(tuple(CONTEXT_BOUNDS)):
        weight = min(max(weight, prior - (reach if name == "bias" else 2 * reach)), prior + reach)
    for start, (low, high) in CONTEXT_BOUNDS.items():
        if name.startswith(start):
            return min(max(weight, low), high)
    if name == "bias":
        return min(max(weight, -6.0), -2.5)
    return max(weight, 0.0)


def fit(samples, kinds, caps, reach=None, mention_cap=None, steps=400):
    sizes = defaultdict(int)
    for sample in samples:
        sizes[sample.group, sample.source if sample.label else ""] += 1
    counts = defaultdict(float)
    for sample in samples:
        # A benign sample holds for all its values; an attack's values are one attack.
        share = sizes[sample.group, sample.source if sample.label else ""] ** -0.5
        for row in sample.rows:
            counts[sample.label, row] += share
    rows = [(label, row, weight) for (label, row), weight in counts.items()]
    total = {label: sum(weight for l, _, weight in rows if l == label) or 1.0 for label in (0, 1)}
    # Both labels weigh the same; the thresholds are calibrated afterwards.
    scale = {label: 400.0 / total[label] for label in (0, 1)}
    names = sorted({name for _, row, _ in rows for name in row} | {"bias"} | set(kinds) | {k + "~" for k in kinds})
    index = {name: i for i, name in enumerate(names)}
    prior = [prior_of(name, kinds) for name in names]
    weights = prior[:]
    data = [(label, [index["bias"]] + [index[n] for n in row], weight * scale[label]) for label, row, weight in rows]
    m, v = [0.0] * len(names), [0.0] * len(names)
    for step in range(1, steps + 1):
        gradient = [PRIOR_STRENGTH * (w - p) for w, p in zip(weights, prior)]
        for label, row, weight in data:
            z = sum(weights[i] for i in row)
            p = 1 / (1 + math.exp(-z)) if z > -30 else 0.0
            g = weight * (p - label)
            for i in row:
                gradient[i] += g
        rate = 0.05 * (1 - 0.8 * step / steps)
        for i, g in enumerate(gradient):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.99 * v[i] + 0.01 * g * g
            weights[i] -= rate * (m[i] / (1 - 0.9**step)) / (math.sqrt(v[i] / (1 - 0.99**step)) + 1e-8)
            weights[i] = clamp(names[i], weights[i], caps, prior[i], reach, mention_cap)
    return dict(zip(names, (round(w, 2) for w in weights)))


def points(sample, weights):
    return max((weights["bias"] + sum(weights.get(n, 0.0) for n in row) for row in sample.rows), default=-99.0)


def in_limit(sample, group, tiers):
    return sample.group == group and (tiers is None or sample.source.split(" ")[0] in tiers)


def calibrate(samples, weights, floor=-1.0):
    """The lowest thresholds that keep each benign set within its limits, not below `floor` (balanced) and -1 (strict)."""
    thresholds = []
    for column in (2, 3):
        lowest, by = (floor if column == 2 else -1.0), "the floor"
        for limit in LIMITS:
            scores = sorted((points(s, weights) for s in samples if not s.label and in_limit(s, limit[0], limit[1])), reverse=True)
            allowed = int(len(scores) * limit[column])
            if len(scores) > allowed and scores[allowed] + 0.01 > lowest:
                lowest, by = scores[allowed] + 0.01, f"{limit[0]} {limit[1] or ''}"
        thresholds.append((round(lowest, 2), by))
    return thresholds


def share(samples, weights, threshold):
    hits = sum(points(s, weights) >= threshold for s in samples)
    return hits, len(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", required=True, nargs="+", help="one file or several")
    parser.add_argument("--class", dest="cls", required=True)
    parser.add_argument("--attacks", default="", help="attack sets to learn from, comma separated parts of their names; default all")
    parser.add_argument("--floor", type=float, default=-1.0, help="lowest threshold of balanced; higher where attacks are few and the benign sets say little about the class")
    parser.add_argument("--leave-out", type=int, metavar="MIN", help="also train without each source that has MIN samples or more and test on it; to standard error")
    parser.add_argument("--reach", type=float, help="how far a weight may rise over what its severity says (twice as far below it), and the bias move: for classes of which the honest sets have little, so that what is only missing there does not block by itself")
    parser.add_argument("--mention-cap", type=float, help="the most that a finding which is only mentioned may weigh: a long text mentions many")
    parser.add_argument("--cap", default="", help="KIND=WEIGHT,...: kinds that recorded attacks have and honest traffic of other sites may have too; they learn no more than this")
    args = parser.parse_args()
    caps = {name: float(most) for name, most in (pair.split("=") for pair in args.cap.split(",") if pair)}
    kinds, samples = read(args.features, args.cls, [a for a in args.attacks.split(",") if a])
    weights = fit(samples, kinds, caps, args.reach, args.mention_cap)
    (balanced, why_balanced), (strict, why_strict) = calibrate(samples, weights, args.floor)
    strict = min(strict, balanced)
    print(f"# Weights of the {args.cls} detector. Made by tools/semantic/train.py; do not edit by hand, train.")
    print("# A name ending in ~ is a finding that is only mentioned. Kinds never seen in training keep the weight of their severity.")
    print(f"# thresholds are set by: balanced {why_balanced.strip()}; strict {why_strict.strip()}")
    print(f"bias\t{weights['bias']:.2f}")
    print(f"threshold.balanced\t{balanced:.2f}")
    print(f"threshold.strict\t{strict:.2f}")
    for name in sorted(weights):
        if name != "bias" and (name.rstrip("~") in kinds or weights[name] != 0):
            print(f"{name}\t{weights[name]:.2f}")
    say = lambda text: print(text, file=sys.stderr)
    groups = defaultdict(list)
    for sample in samples:
        tier = sample.source.split(" ")[0] if sample.group.startswith("synthetic") else ""
        groups[sample.label, sample.group, tier].append(sample)
    for (label, group, tier), members in sorted(groups.items()):
        hits, size = share(members, weights, balanced)
        strict_hits, _ = share(members, weights, strict)
        say(f"{'attack' if label else 'benign'} {group} {tier}: {hits}/{size} = {100 * hits / size:.2f} % balanced, {100 * strict_hits / size:.2f} % strict")
    if args.leave_out:
        sources = defaultdict(list)
        for sample in samples:
            sources[sample.label, sample.group, sample.source if sample.label else ""].append(sample)
        for (label, group, source), held in sorted(sources.items()):
            if len(held) < args.leave_out:
                continue
            ids = {id(sample) for sample in held}
            rest = [sample for sample in samples if id(sample) not in ids]
            other = fit(rest, kinds, caps, args.reach, args.mention_cap, steps=200)
            (threshold, _), _ = calibrate(rest, other, args.floor)
            hits, size = share(held, other, threshold)
            say(f"left out: {'attack' if label else 'benign'} {group} {source}: {hits}/{size} = {100 * hits / size:.2f} %")


if __name__ == "__main__":
    main()
