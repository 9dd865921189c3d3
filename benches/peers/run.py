#!/usr/bin/env python3
"""Builds the benchmark peers, runs them side by side, and prints Markdown tables.

    ./run.py                                 # everything, three times
    ./run.py --divide 10 --reps 1            # a quick try
    ./run.py --peers anabranch,sqlx --workloads save1,burst --sync full --reps 5
    ./run.py --table results.jsonl           # print the tables of an earlier run again

A peer is a folder with a `peer.json`; see README.md for what its binary must do.
For each workload and synchronous mode the peers run in turn (A B C A B C ...),
each run on a fresh database file, and the table shows the medians.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Beside what the repository's own workspace builds, and on the same disk: a temporary folder may be in memory, where
# a commit costs nothing.
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target" / "peers")).absolute()
WORKLOADS = ["save1", "bulk", "bulkwide", "txwork0", "txwork200", "txwork2000", "burst",
             "getpk1", "getpk8", "scan", "rmw", "rmwhot"]
BASELINE = "sqlx"


def discover():
    """The variants of all peers: name -> (folder, binary, file format, crates)."""
    found = {}
    for manifest in sorted(HERE.glob("*/peer.json")):
        peer = json.loads(manifest.read_text())
        # A path is taken from the folder, a bare name is what cargo builds.
        binary = manifest.parent / peer["binary"] if "/" in peer["binary"] else TARGET / "release" / peer["binary"]
        for name, fmt in peer["variants"].items():
            found[name] = {"folder": manifest.parent, "binary": binary,
                           "format": fmt, "crates": peer.get("crates", []),
                           "only_when_named": name in peer.get("only_when_named", [])}
    order = ["anabranch", "anabranch-threaded", "rusqlite", "rusqlite-1w", "sqlx", "sea-orm", "diesel",
             "diesel-async", "toasty", "toasty-2w", "turso", "turso-mvcc"]
    rank = {name: i for i, name in enumerate(order)}
    return dict(sorted(found.items(), key=lambda item: (rank.get(item[0], 99), item[0])))


def build(variants, jobs):
    """Builds each peer in its own workspace; returns the folders that failed."""
    failed = {}
    env = dict(os.environ, CARGO_TARGET_DIR=str(TARGET))
    for folder in sorted({variant["folder"] for variant in variants.values()}):
        if not (folder / "Cargo.toml").exists():
            continue
        print(f"building {folder.name} ...", file=sys.stderr, flush=True)
        done = subprocess.run(["cargo", "build", "--release", "--locked", "-j", str(jobs)],
                              cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            failed[folder] = done.stderr[-2000:]
            print(f"  FAILED\n{done.stderr[-2000:]}", file=sys.stderr)
    return failed


def versions(variants):
    """The locked versions of the crates that the manifests name."""
    lines = []
    for folder in sorted({variant["folder"] for variant in variants.values()}):
        crates = next(v["crates"] for v in variants.values() if v["folder"] == folder)
        lock = (folder / "Cargo.lock").read_text() if (folder / "Cargo.lock").exists() else ""
        pairs = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock)
        lines.append(f"{folder.name}: " + ", ".join(f"{n} {v}" for n, v in pairs if n in crates))
    return lines


def machine():
    """One line on where this ran."""
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown CPU")
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) // 1048576
    rustc = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.strip()
    return (f"nproc {os.cpu_count()}, {cpu}, {memory} GiB, kernel {platform.release()}, {rustc}, "
            f"load average {' '.join(Path('/proc/loadavg').read_text().split()[:3])}")


def clean(data):
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)


def check(variant, name, result, db):
    """Counts the rows again, from outside the process that wrote them."""
    if result["workload"] in ("getpk1", "getpk8", "scan"):
        return []
    problems = []
    table = "wide" if result["workload"] == "bulkwide" else "orders"
    column = "i1" if table == "wide" else "quantity"
    expected = result.get("expected_rows")
    updates = result["ops"] if result["workload"] in ("rmw", "rmwhot") else None
    if variant["format"] == "sqlite":
        sql = (f"PRAGMA integrity_check; SELECT count(*) FROM {table}; "
               f"SELECT coalesce(sum({column}), 0) FROM {table};")
        done = subprocess.run(["sqlite3", str(db), sql], capture_output=True, text=True)
        lines = done.stdout.split("\n")
        if done.returncode != 0 or len(lines) < 3:
            return [f"sqlite3 shell: {done.stderr.strip() or done.stdout.strip()}"]
        if lines[0] != "ok":
            problems.append(f"INTEGRITY: {' '.join(lines[:-3])[:300]}")
        rows, total = int(lines[-3]), float(lines[-2])
    else:
        done = subprocess.run([variant["binary"], "--peer", name, "--workload", "count", "--db", str(db)],
                              capture_output=True, text=True, timeout=120)
        try:
            counted = json.loads(done.stdout.strip().split("\n")[-1])
        except (ValueError, IndexError):
            return [f"REOPEN failed: {(done.stderr or done.stdout).strip()[-300:]}"]
        if counted["errors"]:
            return [f"REOPEN failed: {counted['notes']}"]
        rows = counted["found_rows"]
        total = float(counted["notes"].split("quantity_sum=")[1].split(";")[0])
    if expected is not None and rows != expected:
        problems.append(f"ROWS after reopening: {expected} acknowledged, {rows} found")
    if updates is not None and total != updates:
        problems.append(f"QUANTITY after reopening: {updates} updates acknowledged, sum {total:.0f}")
    return problems


def run_one(variant, name, workload, sync, args):
    """One run in a process of its own, on a fresh database."""
    data = Path(args.data) / f"peer-{name}.data"
    clean(data)
    os.sync()
    db = data / "bench.db"
    command = [variant["binary"], "--peer", name, "--workload", workload, "--sync", sync,
               "--db", str(db), "--deadline", str(args.deadline), "--divide", str(args.divide)] + args.extra
    load = Path("/proc/loadavg").read_text().split()[0]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.deadline + 240)
        lines = [line for line in done.stdout.split("\n") if line.startswith("{")]
        if lines:
            result = json.loads(lines[-1])
            if done.returncode not in (0, 1, 3):
                result["notes"] += f"; exit status {done.returncode} {done.stderr.strip()[-200:]}"
        else:
            result = None
            trouble = f"no result, exit status {done.returncode}: {done.stderr.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        result, trouble = None, "killed after the time limit"
    except OSError as error:
        result, trouble = None, f"cannot run: {error}"
    if result is None:
        result = {"peer": name, "workload": workload, "sync": sync, "ops": 0, "seconds": 0, "ops_per_s": 0,
                  "errors": 1, "retries": 0, "notes": trouble, "max_rss_kb": 0}
    elif db.exists():
        problems = check(variant, name, result, db)
        if problems:
            result["check"] = "; ".join(problems)
    result["load"] = float(load)
    result["files_kb"] = sum(f.stat().st_size for f in data.glob("*")) // 1024
    shutil.rmtree(data, ignore_errors=True)
    return result


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tables(results, peers):
    """Markdown: rates and ratios, then latency, memory, and troubles."""
    groups = {}
    for result in results:
        groups.setdefault((result["workload"], result["sync"], result["peer"]), []).append(result)
    keys = [(w, s) for w in WORKLOADS for s in ("normal", "full")
            if any((w, s, p) in groups for p in peers)]

    def median(group, key):
        values = [r[key] for r in group if key in r]
        return statistics.median(values) if values else None

    out = [f"Operations per second (rows per second for bulk, bulkwide and scan), median of the runs; "
           f"in brackets the ratio to {BASELINE}. `!` marks runs with errors, `†` failed checks, "
           "`‡` runs cut at the deadline.", ""]
    out.append("| workload | sync | " + " | ".join(peers) + " |")
    out.append("|---|---|" + "---:|" * len(peers))
    for w, s in keys:
        base = median(groups.get((w, s, BASELINE), []), "ops_per_s")
        cells = []
        for p in peers:
            group = groups.get((w, s, p))
            if not group:
                cells.append("–")
                continue
            rate = median(group, "ops_per_s")
            cell = number(rate)
            if base:
                cell += f" ({rate / base:.2f})"
            cell += "!" if any(r["errors"] for r in group) else ""
            cell += "†" if any("check" in r or r.get("lost_updates") or "ROWS" in r["notes"] for r in group) else ""
            cell += "‡" if any("deadline" in r["notes"] or "HUNG" in r["notes"] for r in group) else ""
            cells.append(cell)
        out.append(f"| {w} | {s.upper()} | " + " | ".join(cells) + " |")

    def small(title, key, scale, only, form="{:,.1f}"):
        out.extend(["", title, "", "| workload | sync | " + " | ".join(peers) + " |",
                    "|---|---|" + "---:|" * len(peers)])
        for w, s in keys:
            if w not in only:
                continue
            cells = []
            for p in peers:
                value = median(groups.get((w, s, p), []), key)
                cells.append("–" if value is None else form.format(value / scale))
            out.append(f"| {w} | {s.upper()} | " + " | ".join(cells) + " |")

    concurrent = ["txwork0", "txwork200", "txwork2000", "burst", "getpk8", "rmw", "rmwhot"]
    small("99th percentile of one operation, ms (median of the runs):", "p99_us", 1000, concurrent)
    small("Longest operation, ms (median of the runs):", "max_us", 1000, concurrent)
    small("Peak resident memory of the timed part, MiB:", "max_rss_kb", 1024,
          ["save1", "bulk", "bulkwide", "burst", "scan"])
    if any(len(group) > 1 for group in groups.values()):
        out.extend(["", "Spread of the rates over the runs, (max - min) / median, %:", "",
                    "| workload | sync | " + " | ".join(peers) + " |", "|---|---|" + "---:|" * len(peers)])
        for w, s in keys:
            cells = []
            for p in peers:
                rates = [r["ops_per_s"] for r in groups.get((w, s, p), [])]
                middle = statistics.median(rates) if rates else 0
                cells.append(f"{100 * (max(rates) - min(rates)) / middle:.0f}" if middle else "–")
            out.append(f"| {w} | {s.upper()} | " + " | ".join(cells) + " |")

    troubles = []
    for w, s in keys:
        for p in peers:
            for i, r in enumerate(groups.get((w, s, p), []), 1):
                text = []
                if r["errors"]:
                    text.append(f"{r['errors']} errors")
                if r["retries"]:
                    text.append(f"{r['retries']} retries")
                if r["notes"]:
                    text.append(r["notes"])
                if "check" in r:
                    text.append("CHECK " + r["check"])
                if text:
                    troubles.append(f"- {w} {s.upper()} {p} run {i} ({r['ops']} ok): " + "; ".join(text))
    out.extend(["", "Errors, retries and notes of single runs:", ""] + (troubles or ["none"]))
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="comma-separated variants (default: all but those that have to be named)")
    parser.add_argument("--workloads", help="comma-separated (default: all)")
    parser.add_argument("--sync", default="normal,full")
    parser.add_argument("--reps", type=int, default=3)
    parser.add_argument("--deadline", type=float, default=30, help="seconds a timed part may last")
    parser.add_argument("--divide", type=int, default=1, help="divide all operation counts (quick try)")
    parser.add_argument("--data", default=str(TARGET / "data"), help="a folder on the disk to test")
    parser.add_argument("--out", default=str(TARGET / "results.jsonl"), help="every run as one JSON line")
    parser.add_argument("--append", action="store_true", help="keep the runs already in --out")
    parser.add_argument("--no-build", action="store_true", help="run what an earlier call built")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many crates are built at once")
    parser.add_argument("--table", help="print the tables of this file and do nothing else")
    parser.add_argument("extra", nargs="*", help="passed on to the peers (after --)")
    args = parser.parse_args()

    variants = discover()
    if args.table:
        results = [json.loads(line) for line in open(args.table)]
        names = [n for n in variants if any(r["peer"] == n for r in results)]
        if args.peers:
            names = args.peers.split(",")
        print(tables(results, names))
        return
    names = args.peers.split(",") if args.peers else [n for n in variants if not variants[n]["only_when_named"]]
    unknown = [n for n in names if n not in variants]
    if unknown:
        parser.error(f"unknown peers {unknown}; there are {list(variants)}")
    workloads = args.workloads.split(",") if args.workloads else WORKLOADS
    broken = {}
    if shutil.which("sqlite3") is None:
        parser.error("the sqlite3 shell is needed, to count the rows after each run")
    if not args.no_build:
        broken = build({n: variants[n] for n in names}, args.jobs)
        names = [n for n in names if variants[n]["folder"] not in broken]
    print(f"machine: {machine()}\n")
    print("versions:\n" + "\n".join(f"- {line}" for line in versions({n: variants[n] for n in names})) + "\n",
          flush=True)
    results = []
    if args.append and os.path.exists(args.out):
        results = [json.loads(line) for line in open(args.out)]
    begun = time.time()
    Path(args.out).parent.mkdir(parents=True, exist_ok=True)
    with open(args.out, "a" if args.append else "w") as log:
        for workload in workloads:
            for sync in args.sync.split(","):
                for rep in range(args.reps):
                    for name in names:
                        result = run_one(variants[name], name, workload, sync, args)
                        results.append(result)
                        log.write(json.dumps(result) + "\n")
                        log.flush()
                        print(f"{time.time() - begun:7.0f}s {workload} {sync} #{rep + 1} {name}: "
                              f"{number(result['ops_per_s'])}/s errors {result['errors']} "
                              f"retries {result['retries']} {result['notes'][:120]} {result.get('check', '')}",
                              file=sys.stderr, flush=True)
    names = [n for n in variants if any(r["peer"] == n for r in results)]
    print(tables(results, names))
    print(f"\nload average at the end {' '.join(Path('/proc/loadavg').read_text().split()[:3])}, "
          f"{(time.time() - begun) / 60:.0f} minutes")
    if broken or any("check" in result or result.get("lost_updates") for result in results):
        sys.exit("a peer could not be built, or a file does not hold what was acknowledged")


if __name__ == "__main__":
    main()
