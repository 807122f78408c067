#!/usr/bin/env python3
"""Learns how much a match of each rule of the CRS says, from the matches that `portcullis evaluate --features FILE` wrote.

    evaluate() { portcullis evaluate --mode both --crs CRS --paranoia $level --detect-only "$@"; }
    for level in 1 4; do
      [ $level = 4 ] && every=5 || every=1
      evaluate --label benign --features benign$level.tsv CORPORA/benign CORPORA/lifelike CORPORA/review2/honest*.jsonl
      evaluate --weak tools/semantic/weak-labels.json --label attack --every $every --features attack$level.tsv \\
          CORPORA/attack CORPORA/nemesida-half CORPORA/review2/{attacks,nuclei-rest,afrog}.jsonl
      for place in item id cookie header form json; do
        evaluate --weak tools/semantic/weak-labels.json --label attack --place $place --every $((7 * every)) \\
            --features $place$level.tsv CORPORA/attack
      done
    done
    level() { echo attack$1.tsv+item$1.tsv+id$1.tsv+cookie$1.tsv+header$1.tsv+form$1.tsv+json$1.tsv+benign$1.tsv; }
    tools/crs/train.py $(level 1) $(level 4) > crates/portcullis-inspect/weights/crs.tsv

(of the benign sets of the review without the lines that are marked as hard: they carry a whole attack.)

Features of further versions of the CRS are given in further pairs. A rule is its id and its fingerprint (what it looks at and
looks for), so that one that is the same in two versions is learned once, from both.

The model: the rules that match in one value of a message (a parameter, a cookie, the path) vote with their weights; at 1 and
above the anomaly points of the value count, below they do not. What is learned:

* A rule has a weight for each kind of field (FIELDS). Where the site made the field for texts, markup or code, only rules that
  no benign request triggers there count.
* Attacks can come in any field, so their rate is that of all fields together; that of benign requests is the one in this kind of
  field, at the upper end of what the count allows, with the rate in all fields for some hundred requests beside it. No weight is
  above what the two bear (CAPS).
* Where benign requests do not trigger a rule, its weight is that. Of a rule that hardly anything triggers its family (the rules
  of a file of the CRS; the files about the protocol are one) says what is to be expected: its weight is what the evidence of the
  middle one of these bears, or of all of them together. A family of which nothing is known needs a second opinion.
* In fields for plain values (numbers, identifiers, words of a list) and in the path every rule about attacks has the weight 1 that
  no benign request triggers there; in the former also one that fewer than one benign request in 20,000 does.
* The others begin with weights from a logistic regression over the values, scaled so that every set of benign requests stays
  within LIMIT; then single weights are moved up and down (GRID) as long as attacks gain more than benign requests lose, within
  the limits. Sources count by the square root of their size.
* First for the rules of the first file of a pair (paranoia level 1), then, with these fixed, for those that only the second has.

Printed to standard error: detection and false positives of each set, the frontier as the scale moves, and with --leave-out the
same for each source that the table was not learned from. Standard library only.
"""

import argparse
import math
import sys
from collections import Counter, defaultdict

LIMIT = 0.0009  # of a set of benign requests, beside what the semantic detector flags there
PRIOR = 0.02
STEPS = 300
SHARP_BENIGN = 1 / 20000
SHARP_RATIO = 200
COST = 3.0  # of a benign request beside an attack, both by the root of their set's size
GRID = [0.0, 0.1, 0.2, 0.25, 0.34, 0.4, 0.5, 0.6, 0.67, 0.75, 0.8, 0.9, 1.0]
# Attacks trigger a rule so many times as often as benign requests do: its weight is at most that.
CAPS = [(20, 1.0), (5, 0.9), (2, 0.67), (1, 0.5), (0, 0.34)]
# Attacks that trigger a rule; of fewer its family is asked.
SCARCE = 20
# Requests that the rate of a rule in all fields counts for beside what is known of one kind of field.
PRIOR_REQUESTS = 300
# Families that say what an attack does, 9xx of the ids; the others administer the score.
FAMILIES = range(911, 949)
# Of these, those about attacks and not about the protocol.
ATTACKS = (921, *range(930, 945))
# Classes that are logged, not blocked.
LOGGED = ("leak", "redirect")
# Kinds of fields, in the order of the table.
FIELDS = ("document", "search", "plain", "query", "body", "cookie", "header", "path", "file", "other")
# Of these, those for values without a sentence or a sign of a language.
PLAIN = ("plain", "path")
# Where the site made a field for what the rule looks for, a match weighs nothing and is no evidence.
MADE = "made"


class Sample:
    __slots__ = ("label", "group", "source", "semantic", "points", "spots")

    def __init__(self, label, group, source):
        self.label, self.group, self.source = label, group, source
        self.semantic, self.points, self.spots = False, 0, {}


def read_plan(path):
    # Below 100 the ids of a file are those of rules that find nothing.
    with open(path, encoding="utf-8") as lines:
        rules = [line.split("\t")[1].split() for line in lines if line.startswith("#plan\t")]
    return {(int(rule), fingerprint) for rule, fingerprint in rules if int(rule) % 1000 >= 100}


def read(paths):
    return [sample for path in paths.split("+") for sample in read_file(path)]


def read_file(path):
    samples = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            number, label, group, source, what, rest = line.rstrip("\n").split("\t", 5)
            sample = samples.get(number)
            if sample is None:
                tier = source.split(" ")[0] if group.startswith("synthetic") else source
                sample = samples[number] = Sample(int(label), group, tier)
            if what == "#score":
                cls, over, _ = rest.split(" ", 2)
                sample.semantic |= float(over) >= 0 and cls not in LOGGED
            elif what == "#rule":
                rule, fingerprint, points, field, spot = rest.split(" ", 4)
                rules = sample.spots.setdefault(spot, {})
                key = (int(rule), fingerprint, field)
                rules[key] = rules.get(key, 0) + int(points)
                sample.points += int(points)
    return list(samples.values())


class Evidence:
    """What the samples say of each rule: matches in benign requests by kind of field, in attacks in any."""

    def __init__(self, samples, exposed):
        self.benign, self.benign_any, self.attacks = Counter(), Counter(), Counter()
        self.exposed = exposed
        for sample in samples:
            keys = {key for spot in sample.spots.values() for key in spot if key[2] != MADE}
            if sample.label:
                self.attacks.update({key[:2] for key in keys})
            else:
                self.benign.update(keys)
                self.benign_any.update({key[:2] for key in keys})
        self.totals = sum(not s.label for s in samples), sum(s.label for s in samples)
        self.rules = {key[:2] for key in self.benign} | set(self.attacks)
        families = defaultdict(list)
        for rule in self.rules:
            families[family(rule)].append(rule)
        # What the evidence bears of the middle one of each family's rules, by kind of field.
        self.bears = {}
        for name, rules in families.items():
            known = [rule for rule in rules if self.benign_any[rule] + self.attacks[rule] >= SCARCE]
            for field in FIELDS:
                if known:
                    found = sorted(self.cap((*rule, field)) for rule in known)
                    self.bears[name, field] = found[(len(found) - 1) // 2]
                else:
                    benign = sum(self.benign[(*rule, field)] for rule in rules)
                    benign_any, attacks = (sum(of[rule] for rule in rules) for of in (self.benign_any, self.attacks))
                    self.bears[name, field] = self.bound(benign, benign_any, attacks, field)

    def cap(self, key):
        """The most that the rule's own evidence bears in this kind of field."""
        return self.bound(self.benign[key], self.benign_any[key[:2]], self.attacks[key[:2]], key[2])

    def bound(self, benign, benign_any, attacks, field):
        prior = benign_any / max(self.totals[0], 1) * PRIOR_REQUESTS
        upper = (benign + 1 + 1.28 * math.sqrt(benign + 1) + prior) / (self.exposed[field] + PRIOR_REQUESTS)
        ratio = attacks / max(self.totals[1], 1) / upper
        return next(most for least, most in CAPS if ratio >= least)

    def is_sharp(self, key):
        """So few benign requests trigger it in such a field, and so many attacks, that it decides alone."""
        rates = self.benign[key] / max(self.totals[0], 1), self.attacks[key[:2]] / max(self.totals[1], 1)
        return rates[0] < SHARP_BENIGN and rates[1] > SHARP_RATIO * rates[0]

    def of_family(self, key):
        """A family of which nothing is known needs a second opinion, too."""
        return self.bears.get((family(key), key[2]), CAPS[-1][1])

    def quiet(self, key):
        """The weight of a rule that no benign request triggers in this kind of field."""
        if self.attacks[key[:2]] >= SCARCE or self.benign_any[key[:2]] >= SCARCE:
            weight = self.cap(key)
        else:
            weight = self.of_family(key)
        # A number, an identifier, a short word or a path has no reason to look like a piece of an attack.
        return 1.0 if key[2] in PLAIN and key[0] // 1000 in ATTACKS else weight


def exposure(samples):
    """Benign requests with something in each kind of field that any rule of any level notes."""
    exposed = Counter()
    for sample in samples:
        if not sample.label:
            exposed.update({key[2] for spot in sample.spots.values() for key in spot})
    return exposed


def family(rule):
    """Rules of the same file of the CRS; the files about the protocol that are not about attacks on it are one."""
    number = rule[0] // 1000
    return 920 if number <= 922 and number != 921 else number


def fit(samples, noisy, fixed):
    """Logistic regression: weights of the noisy rules, at or above zero, and the bias. `fixed`: votes that are given."""
    sizes = Counter((s.label, s.group, s.source if s.label else "") for s in samples)
    rows = defaultdict(float)
    for sample in samples:
        share = sizes[sample.label, sample.group, sample.source if sample.label else ""] ** -0.5
        spots = [frozenset(spot) for spot in sample.spots.values()]
        if sample.label and spots:
            # An attack is in one value; which one, the rules say.
            spots = [max(spots, key=len)]
        for rules in spots:
            if not any(rule not in noisy and rule not in fixed for rule in rules):
                given = round(sum(fixed.get(rule, 0.0) for rule in rules), 2)
                rows[sample.label, tuple(sorted(rule for rule in rules if rule in noisy)), given] += share
    total = {label: sum(w for (l, _, _), w in rows.items() if l == label) or 1.0 for label in (0, 1)}
    names = sorted(noisy)
    index = {rule: at + 1 for at, rule in enumerate(names)}
    data = [(label, [index[r] for r in rules], given, w * 400 / total[label]) for (label, rules, given), w in rows.items()]
    weights = [-2.0] + [0.0] * len(names)
    m, v = [0.0] * len(weights), [0.0] * len(weights)
    for step in range(1, STEPS + 1):
        gradient = [PRIOR * 10 * w for w in weights]
        gradient[0] = 0.0
        for label, indices, given, w in data:
            z = weights[0] + 6.0 * given + sum(weights[i] for i in indices)
            g = w * (1 / (1 + math.exp(-max(min(z, 30.0), -30.0))) - label)
            gradient[0] += g
            for i in indices:
                gradient[i] += g
        rate = 0.1 * (1 - 0.9 * step / STEPS)
        for i, g in enumerate(gradient):
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.99 * v[i] + 0.01 * g * g
            weights[i] -= rate * (m[i] / (1 - 0.9**step)) / (math.sqrt(v[i] / (1 - 0.99**step)) + 1e-8)
            weights[i] = max(weights[i], 0.0) if i else min(weights[i], -0.5)
    return {rule: weights[index[rule]] for rule in names}


def weigh(weights, rule):
    return 0.0 if rule[2] == MADE else weights.get(rule, 1.0)


def counted(sample, weights, threshold=5):
    """True if the points of the values that count pass the threshold."""
    points = sum(sum(spot.values()) for spot in sample.spots.values() if sum(weigh(weights, r) for r in spot) >= 0.999)
    return points >= threshold


def scaled(learned, fixed, scale):
    weights = dict(fixed)
    weights.update({rule: min(math.floor(w * scale * 100) / 100, 1.0) for rule, w in learned.items()})
    return weights


def calibrate(samples, learned, fixed, limit):
    """The largest scale at which every set of benign requests is within the limit."""
    benign = [s for s in samples if not s.label and s.points >= 5]
    everyone = [s for s in samples if not s.label]
    sizes = Counter(s.group for s in everyone)

    def fits(scale):
        weights = scaled(learned, fixed, scale)
        flagged = Counter(s.group for s in benign if not s.semantic and counted(s, weights))
        return all(flagged[group] <= limit * size for group, size in sizes.items())

    low, high = 0.0, 3.0
    for _ in range(14):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def improve(samples, weights, noisy, caps, limit):
    """Moves the weights of single rules while attacks gain more than benign requests lose."""
    sizes = Counter((s.label, s.group, s.source if s.label else "") for s in samples)
    budget = {group: limit * size for (label, group, _), size in sizes.items() if not label}
    # Equal samples are one.
    worth, benign, rules_of = defaultdict(float), {}, {}
    for s in samples:
        if s.points < 5 or not any(r in noisy for spot in s.spots.values() for r in spot):
            if not s.label and not s.semantic and counted(s, weights):
                budget[s.group] -= 1
            continue
        key = tuple(sorted((tuple(sorted(spot)), sum(spot.values())) for spot in s.spots.values()))
        if s.label:
            worth[key] += sizes[1, s.group, s.source] ** -0.5 * (0.2 if s.semantic else 1.0)
        elif not s.semantic:
            worth[key] -= COST * sizes[0, s.group, ""] ** -0.5
            benign.setdefault(key, Counter())[s.group] += 1
        rules_of.setdefault(key, {r for spot, _ in key for r in spot})
    having = defaultdict(list)
    for key, rules in rules_of.items():
        for rule in rules & noisy:
            having[rule].append(key)
    on = lambda key: sum(p for spot, p in key if sum(weigh(weights, r) for r in spot) >= 0.999) >= 5
    state = {key: on(key) for key in rules_of}
    used = Counter()
    for key, groups in benign.items():
        if state[key]:
            used.update(groups)
    for _ in range(8):
        moved = False
        for rule in sorted(noisy, key=lambda rule: -sum(abs(worth[key]) for key in having[rule])):
            before, best = weights[rule], None
            for value in GRID:
                if value == before or value > caps[rule]:
                    continue
                weights[rule] = value
                gain, change = 0.002 * (before - value), Counter()
                for key in having[rule]:
                    now = on(key)
                    if now != state[key]:
                        sign = 1 if now else -1
                        gain += sign * worth[key]
                        for group, count in benign.get(key, {}).items():
                            change[group] += sign * count
                fits = all(c <= 0 or used[group] + c <= budget[group] for group, c in change.items())
                if fits and gain > 1e-6 and (best is None or gain > best[0]):
                    best = gain, value, change
            weights[rule] = before
            if best:
                weights[rule], moved = best[1], True
                used.update(best[2])
                for key in having[rule]:
                    state[key] = on(key)
        if not moved:
            break
    return weights


def stage(samples, noisy, fixed, caps, limit):
    learned = fit(samples, noisy, fixed)
    weights = scaled(learned, fixed, calibrate(samples, learned, fixed, limit))
    weights.update({rule: min(weights[rule], caps[rule]) for rule in noisy})
    return improve(samples, weights, noisy, caps, limit)


def learn(pairs, limit, plan=()):
    """The weights of the rules that matched, and of those of the plan that did not, with the evidence."""
    weights, known = {}, {}
    exposed = exposure(sample for pair in pairs for sample in pair[1] or pair[0])
    for stage_of, least in ((0, limit), (1, max(limit, 0.002))):
        samples = [sample for pair in pairs for sample in pair[stage_of]]
        if not samples:
            continue
        evidence = Evidence(samples, exposed)
        made = {key for s in samples for spot in s.spots.values() for key in spot if key[2] == MADE}
        weights.update(dict.fromkeys(made, 0.0))
        fixed, caps = dict(weights), {}
        for rule in evidence.rules - {key[:2] for key in weights if key[2] != MADE}:
            known[rule] = evidence
            for key in ((*rule, field) for field in FIELDS):
                if not evidence.benign[key]:
                    fixed[key] = evidence.quiet(key)
                elif key[2] == "plain" and evidence.is_sharp(key):
                    fixed[key] = 1.0
                elif key[2] == "document":
                    # Benign texts trigger ten rules at once.
                    fixed[key] = 0.0
                else:
                    caps[key] = evidence.cap(key)
        weights = stage(samples, set(caps), fixed, caps, least)
        if not stage_of:
            first = evidence
    for rule in plan:
        if rule not in known and rule[0] // 1000 in FAMILIES:
            weights.update({key: first.quiet(key) for key in ((*rule, field) for field in FIELDS)})
    for rule in {key[:2] for key in weights}:
        document, body, query = ((*rule, field) for field in ("document", "body", "query"))
        if document in weights:
            # A field of the body that the query has, too, counts as one of the query: that takes nothing away.
            weights[query] = max(weights[query], weights[body])
            weights[document] = min(weights[document], weights[body])
    return weights, known


def rates(samples, weights):
    table = defaultdict(lambda: [0, 0, 0, 0])
    for sample in samples:
        row = table[sample.label, sample.group]
        row[0] += 1
        row[1] += sample.points >= 5
        row[2] += sample.semantic
        row[3] += sample.semantic or counted(sample, weights)
    return table


def say(*text):
    print(*text, file=sys.stderr)


def report(name, samples, weights):
    say(f"{name}: set, requests, crs %, semantic %, both %")
    for (label, group), (size, crs, semantic, both) in sorted(rates(samples, weights).items()):
        share = [100 * part / size for part in (crs, semantic, both)]
        missed = "  <" if label and share[2] < max(share[:2]) - 0.3 or not label and share[2] > share[1] + 0.2 else ""
        say(f"  {'attack' if label else 'benign'} {group:34} {size:6} {share[0]:7.2f} {share[1]:7.2f} {share[2]:7.2f}{missed}")


def frontier(pairs):
    say("frontier: limit %, attacks that the CRS stops and semantic does not: % kept, benign requests flagged beside semantic: %")
    low = pairs[0][0]
    for limit in (0.0, 0.0005, 0.001, 0.0015, 0.002, 0.005, 0.01, 0.03):
        weights, _ = learn(pairs, limit)
        gain = [s for s in low if s.label and s.points >= 5 and not s.semantic]
        benign = [s for s in low if not s.label]
        kept = sum(counted(s, weights) for s in gain) / max(len(gain), 1)
        flagged = sum(not s.semantic and counted(s, weights) for s in benign) / max(len(benign), 1)
        say(f"  {100 * limit:5.2f} {100 * kept:7.2f} {100 * flagged:7.3f}")


def leave_out(pairs, least, limit, plan):
    low = pairs[0][0]
    sources = Counter((s.label, s.group, "" if not s.label and not s.group.startswith("synthetic") else s.source) for s in low)
    say("left out: source, requests, of those that the CRS stops: % that the table counts")
    for (label, group, source), size in sorted(sources.items()):
        if size < least:
            continue
        is_held = lambda s: s.label == label and s.group == group and (not source or s.source == source)
        rest = [([s for s in first if not is_held(s)], []) for first, _ in pairs]
        weights, _ = learn(rest, limit, plan)
        held = [s for s in low if is_held(s)]
        stopped = sum(s.points >= 5 for s in held)
        hits = sum(counted(s, weights) for s in held)
        say(f"  {'attack' if label else 'benign'} {group} {source}: {size}, {stopped} stopped, {hits} counted = {100 * hits / size:.2f} % of all")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="+", help="pairs of files (or FILE+FILE): paranoia level 1, paranoia level 4")
    parser.add_argument("--limit", type=float, default=LIMIT)
    parser.add_argument("--frontier", action="store_true")
    parser.add_argument("--leave-out", type=int, metavar="MIN", help="also learn without each source of MIN requests or more, and test on it")
    args = parser.parse_args()
    if len(args.features) % 2:
        parser.error("files come in pairs")
    sets = [read(path) for path in args.features]
    pairs = list(zip(sets[::2], sets[1::2]))
    plan = set().union(*(read_plan(path) for paths in args.features for path in paths.split("+")))
    weights, evidence = learn(pairs, args.limit, plan)
    print("# How much a match of a rule of the CRS says. Made by tools/crs/train.py; do not edit by hand, learn.")
    print("# 1 decides alone; below, the points of a value count where the weights of the rules that match in it come to 1.")
    totals = [sum(s.label == label for first, _ in pairs for s in first) for label in (0, 1)]
    print(f"# Evidence: requests with a match, of {totals[0]} benign ones and {totals[1]} attacks.")
    print("# rule", "fingerprint", *FIELDS, "attacks with a match", "benign requests with a match, by field", sep="\t")
    for rule in sorted({rule[:2] for rule in weights if rule[2] != MADE}):
        of = evidence.get(rule)
        benign = [f"{field} {of.benign[(*rule, field)]}" for field in FIELDS if of.benign[(*rule, field)]] if of else []
        row = [f"{weights.get((*rule, field), 1.0):.2f}" for field in FIELDS]
        print(*rule, *row, of.attacks[rule] if of else 0, ", ".join(benign) or "none", sep="\t")
    for at, (first, second) in enumerate(pairs):
        report(f"{args.features[2 * at]}", first, weights)
        report(f"{args.features[2 * at + 1]}", second, weights)
    if args.frontier:
        frontier(pairs)
    if args.leave_out:
        leave_out(pairs, args.leave_out, args.limit, plan)


if __name__ == "__main__":
    main()
