#!/usr/bin/env python3
"""Checks what people read: links lead to files and headings that exist, tests that docs/bypasses.md names exist,
prose has no words of which the field knows a better one, and lines fit: 120 columns in documents, 110 in comments of
the source (rustfmt sees to its code).

    scripts/check-docs.py        prints each mistake with its file, and exits with 1 if there is one
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
COMMENT = re.compile(r" *//[/!]? ?(.*)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# `portcullis-http/framing.rs: one`, `two`: a file of a crate; `tests/it/` is left out.
TESTS = re.compile(r"`(portcullis[\w-]*)/([^`:]+)(?:: (\w+))?`((?:, `\w+`)*)")

# What not to write, and what to write instead. Code (in back-ticks or fences) is not read.
WORDS = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead) for pattern, instead in [
    (r"honest(?:ly)?", "benign"),
    (r"false alarms?", "false positive"),
    (r"somebody(?:'s)?", "who it is: a user, an operator, an attacker"),
    (r"whoever", "who it is, or: anyone who"),
    (r"(?:is|are|was|were|be|been|being) told", "is reported, is logged; is distinguished"),
    (r"(?:is|are|was|were) none of (?!them)", "is not one of"),
    (r"of ours", "our, our own"),
    (r"of before", "previous"),
    (r"dear(?:er|est)?", "expensive"),
    (r"levers?", "optimization"),
    (r"in vain", "without effect, for nothing"),
    (r"comes? again", "is repeated; retries"),
    (r"came of (?:it|them|the)", "result, outcome"),
    (r"(?:gives?|gave) way", "is dropped, is replaced"),
    (r"the way out", "fix, hint"),
    (r"so once", "once"),
    (r"whereabouts", "geolocation"),
    (r"glued", "adjacent, directly behind"),
    (r"oddit(?:y|ies)", "anomaly"),
    (r"set-ups?", "setup, configuration"),
]]


def anchor(heading):
    """The anchor that GitHub makes of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "").strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def links(path):
    """What is wrong with the links of a document; addresses of the web are not visited."""
    for target in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, place = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{target} does not exist"
        elif place and file.suffix == ".md" and place not in anchors(file):
            yield f"{target}: {file.name} has no such heading"


def tests(path):
    """Tests that a document names and nobody has; at least one must be named."""
    named = 0
    for crate, name, first, others in TESTS.findall(path.read_text(encoding="utf-8")):
        folder = ROOT / "crates" / crate
        found = next((p for p in (folder / "tests" / "it" / name, folder / name) if p.exists()), None)
        if found is None:
            yield f"{crate}/{name} does not exist"
            continue
        files = [found] if found.is_file() else sorted(found.rglob("*.rs"))
        source = "\n".join(file.read_text(encoding="utf-8") for file in files)
        for test in filter(None, [first, *re.findall(r"`(\w+)`", others)]):
            named += 1
            if not re.search(rf"\bfn {test}\b", source):
                yield f"{crate}/{name} has no test {test}"
    if named == 0:
        yield "no test is named: the form of the table has changed, mend this script"


def too_long(path, columns):
    """Lines that are too long. Tables, code and single words may be; in source, all but comments."""
    is_document, fenced = path.suffix == ".md", False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        comment = COMMENT.match(line)
        if not is_document and not comment:
            continue
        text = line.strip() if is_document else comment[1]
        fenced ^= text.startswith("```")
        if len(line) > columns and not fenced and not text.startswith("|") and " " in text:
            yield f"line {number} has {len(line)} columns; at most {columns} are meant"


def words(path):
    """Words of the list above in prose: in documents, and in comments of the source."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        comments = (COMMENT.match(line) for line in text.splitlines())
        text = "\n".join(comment[1] if comment else "" for comment in comments)
    # With blanks in the place of code, so that lines keep their numbers.
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)|\S+\.jsonl|--\w+", "", FENCE.sub(lambda code: "\n" * code[0].count("\n"), text))
    for number, line in enumerate(text.splitlines(), 1):
        for word, instead in WORDS:
            if found := word.search(line):
                yield f"line {number}: {found[0]!r} (write: {instead})"


def tracked(pattern):
    listed = subprocess.run(["git", "ls-files", pattern], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def main():
    documents, sources = tracked("*.md"), tracked("*.rs")
    wrong = [(path, fault) for path in documents for fault in links(path)]
    wrong += [(path, fault) for path in documents for fault in too_long(path, 120)]
    wrong += [(path, fault) for path in [*documents, *tracked("*/src/*.rs")] for fault in words(path)]
    wrong += [(path, fault) for path in sources for fault in too_long(path, 110)]
    bypasses = ROOT / "docs" / "bypasses.md"
    wrong += [(bypasses, fault) for fault in tests(bypasses)]
    for path, fault in wrong:
        print(f"{path.relative_to(ROOT)}: {fault}", file=sys.stderr)
    print(f"{len(documents)} documents, {len(sources)} source files, {len(wrong)} mistakes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
