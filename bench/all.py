"""Run every benchmark, one after the other, and print one table of what they found."""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NOT_BENCHMARKS = {
    *("all.py", "harness.py"),
    *("rivals.py", "simulation.py", "limiter_cases.py", "limiter_plots.py"),
    *("limiter_rows.py", "limiter_rows_first.py", "limiter_rows_others.py"),
    *("limited_server.py", "peers_limited.py"),
    *("processes.py", "real_pages.py", "site_server.py", "unpaced.py", "unpaced_job.py"),
    *("hostile_hosts.py", "world_networks.py", "bars_plot.py"),
    *("car_server.py", "repos_work.py"),
    *("newcomer_jobs.py",),
    *("sequence_bare.py", "sequence_drive.py"),
    *("polling_parts.py", "polling_order.py"),
    *("poisoned_drive.py", "poisoned_table.py", "poisoned_worlds.py"),
    *("poisoned_events.py", "poisoned_polling.py", "poisoned_repos.py"),
    *("fleet_drive.py", "fleet_growth.py", "fleet_simulation.py"),
    *("web_rival.py",),  # against a library that is not installed
    *("events_parts.py", "events_rival.py", "events_soak.py", "events_stages.py"),
}


def main() -> None:
    """Exit code 1 if any bar falls short or any benchmark breaks."""
    broken, rows = False, []
    for script in sorted(path for path in HERE.glob("*.py") if path.name not in NOT_BENCHMARKS):
        print(f"== {script.stem}", flush=True)
        done = subprocess.run(  # noqa: S603 - our own scripts
            [sys.executable, str(script), "--json"], stdout=subprocess.PIPE, text=True, check=False
        )
        *lines, last = done.stdout.splitlines() or [""]
        print("\n".join(lines), flush=True)
        broken |= done.returncode != 0
        if not last.startswith("{"):
            print(f"{script.stem} ended with code {done.returncode} and no figures", file=sys.stderr)
            continue
        rows += [(script.stem, bar) for bar in json.loads(last)["bars"]]
    print(f"\n{'benchmark':14} {'':5} {'need':>10} {'got':>10}  what")
    for name, bar in rows:
        print(f"{name:14} {'ok' if bar['ok'] else 'SHORT':5} {bar['need']:>10} {bar['got']:>10g}  {bar['what']}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
