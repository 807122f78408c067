#!/usr/bin/env python3
"""What a change needs while one works: format, lints, and the tests of the crates that changed and of those that use them.

    scripts/check-changed.py [--since REVISION] [--print]

Changed is what differs from the commit where this branch left REVISION (origin/main, or main where there is none), with
what is not committed and not tracked. Cargo lints and builds again what depends on it; of the test programs those run
that belong to a changed crate, or to one that uses it directly, two at a time. `make test` runs everything.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
# As `make test` builds: with other features everything would be built a second time.
WORKSPACE = ["--workspace", "--locked", "--features", "portcullis/http3"]
# Files outside of the crates that tests of a crate read: a change of them is a change of that crate.
READ_BY = {
    "docs/": ["portcullis-config", "portcullis-compile", "portcullis-testkit"],
    "tests/": ["portcullis-testkit"],
    "deploy/": ["portcullis-config"],
    "examples/": ["portcullis-config"],
}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_files(since):
    base = since
    if base is None:
        known = git("for-each-ref", "--format=%(refname:short)", "refs/remotes/origin/main", "refs/heads/main").split()
        base = known[0] if known else "HEAD"
    start = git("merge-base", base, "HEAD").strip()
    return set(git("diff", "--name-only", start).split() + git("ls-files", "-o", "--exclude-standard").split())


def workspace():
    """The folder and the direct uses of each crate."""
    text = subprocess.run(
        [CARGO, "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    packages = json.loads(text)["packages"]
    names = {package["name"] for package in packages}
    return {
        package["name"]: (
            str(Path(package["manifest_path"]).parent.relative_to(ROOT)) + "/",
            {one["name"] for one in package["dependencies"]} & names,
        )
        for package in packages
    }


def programs():
    """The test programs of the workspace, built: name of the crate, folder, path."""
    command = [CARGO, "test", *WORKSPACE, "--no-run", "--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if built.returncode:
        sys.exit(built.returncode)
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
            folder = Path(message["manifest_path"]).parent
            yield folder.name if folder.name.startswith("portcullis") else "portcullis-bench", folder, message["executable"]


def test(selected):
    """Runs test programs, those that take long first as far as that is known by their size."""
    def run(program):
        crate, folder, path = program
        start = time.monotonic()
        done = subprocess.run([path, "--quiet"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "CARGO_MANIFEST_DIR": str(folder)})
        return crate, Path(path).name, done, time.monotonic() - start

    failed = 0
    selected.sort(key=lambda program: -os.path.getsize(program[2]))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for crate, name, done, seconds in pool.map(run, selected):
            if done.returncode:
                failed += 1
                print(done.stdout)
            print(f"{'failed' if done.returncode else 'passed'}  {seconds:6.1f} s  {crate} {name}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", help="the revision that the change is held against")
    parser.add_argument("--print", action="store_true", help="say which crates are meant, and run nothing")
    options = parser.parse_args()

    files = changed_files(options.since)
    if not files:
        print("nothing has changed")
        return 0
    crates = workspace()
    everything = {"Cargo.toml", "Cargo.lock"} & files
    changed = {
        name for name, (folder, _) in crates.items()
        if everything or any(file.startswith(folder) for file in files)
    }
    for prefix, readers in READ_BY.items():
        if any(file.startswith(prefix) for file in files):
            changed.update(readers)
    tested = changed | {name for name, (_, uses) in crates.items() if uses & changed}
    print(f"{len(files)} files; changed: {', '.join(sorted(changed)) or 'no crate'}")
    print(f"tests of: {', '.join(sorted(tested)) or 'no crate'}", flush=True)
    if options.print:
        return 0
    steps = [[CARGO, "fmt", "--all", "--check"], ["scripts/check-docs.py"]]
    if changed:
        steps.append([CARGO, "clippy", *WORKSPACE, "--all-targets", "--quiet", "--", "-D", "warnings"])
    if any(file.startswith("console/") for file in files):
        steps += [["make", "console"], ["npm", "--prefix", "console", "test"]]
    for step in steps:
        print("+", " ".join(step), flush=True)
        if subprocess.run(step, cwd=ROOT).returncode:
            return 1
    if not tested:
        return 0
    selected = [program for program in programs() if program[0] in tested]
    failed = test(selected)
    print(f"{len(selected) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
