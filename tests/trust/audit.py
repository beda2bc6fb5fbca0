"""Ask pip-audit about the pinned dependencies; say so where it cannot ask.

    python -m tests.trust.audit     (in the environment that `make audit` makes)

Fails if a known vulnerability is found. Where the database has nothing to say about any package, as
behind a registry of one's own, nothing was audited, and that is what is printed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Run pip-audit and read its answer."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(ROOT / "constraints.txt")]
    command += ["--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"not audited: pip-audit could not ask ({done.stderr.strip()[-200:]})")
        return 0
    asked = [package for package in packages if "skip_reason" not in package]
    found = [package for package in asked if package["vulns"]]
    for package in found:
        names = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"{package['name']} {package['version']}: {names}")
    if not asked:
        print(f"not audited: none of {len(packages)} packages could be asked about")
    else:
        print(f"{len(found)} of {len(asked)} packages have known vulnerabilities")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
