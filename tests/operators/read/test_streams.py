from __future__ import annotations

import gzip
import io
import sys

import pytest
import zstandard

from headrace.errors import MissingDependency
from headrace.operators.read._streams import BLOCK_BYTES, BrokenStream, is_compressed, open_blocks

CONTENT = b"".join(b"%d words that can be squeezed\n" % number for number in range(300_000))
GZ = gzip.compress(CONTENT, 1)
ZST = zstandard.ZstdCompressor().compress(CONTENT)


def _read(body: bytes, path: str) -> tuple[bytes, str]:
    """What came, and what then broke."""
    out = bytearray()
    try:
        for block in open_blocks(io.BytesIO(body), path):
            assert block
            assert len(block) < 2 * BLOCK_BYTES
            out += block
    except BrokenStream as error:
        return bytes(out), str(error)
    return bytes(out), ""


@pytest.mark.parametrize(
    ("body", "path"), [(CONTENT, "a"), (GZ, "a.gz"), (ZST, "a.ZST"), (b"", "a.gz"), (b"", "a.zst")]
)
def test_content_comes_back(body: bytes, path: str) -> None:
    assert _read(body, path) == (CONTENT if body else b"", "")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two"), "a.gz"),
        (gzip.compress(b"one two") + b"\0" * 512, "a.gz"),
        (zstandard.compress(b"one ") + b"\x50\x2a\x4d\x18\4\0\0\0skip" + zstandard.compress(b"two"), "a.zst"),
    ],
)
def test_several_members_are_one_stream(body: bytes, path: str) -> None:
    assert _read(body, path) == (b"one two", "")


@pytest.mark.parametrize(("body", "path"), [(GZ, "a.gz"), (ZST, "a.zst")])
def test_what_came_before_a_cut_is_kept(body: bytes, path: str) -> None:
    out, told = _read(body[: len(body) * 2 // 3], path)
    assert CONTENT.startswith(out)
    assert len(out) > len(CONTENT) // 2
    assert (
        told == f"the {'gzip' if path == 'a.gz' else 'zstd'} stream is cut off at compressed byte {len(body) * 2 // 3}"
    )


@pytest.mark.parametrize("path", ["a.gz", "a.zst"])
def test_another_format_is_told(path: str) -> None:
    out, told = _read(b'{"text": "plain"}\n', path)
    assert out == b""
    assert told.startswith("not a ")


def test_damage_is_told() -> None:
    body = bytearray(GZ)
    body[-6] ^= 1  # in the checksum
    out, told = _read(bytes(body), "a.gz")
    assert out == CONTENT
    assert "incorrect data check" in told
    out, told = _read(gzip.compress(b"one") + b"garbage after it", "a.gz")
    assert out == b"one"
    assert "damaged gzip stream" in told
    body = bytearray(ZST)
    body[len(body) // 2 : len(body) // 2 + 64] = b"\xff" * 64
    out, told = _read(bytes(body), "a.zst")
    assert CONTENT.startswith(out)
    assert told


def test_long_windows_are_read() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    squeezed = zstandard.ZstdCompressor(compression_params=parameters).compress(CONTENT)
    assert _read(squeezed, "a.zst") == (CONTENT, "")


@pytest.mark.parametrize(("pack", "path"), [(gzip.compress, "a.gz"), (zstandard.compress, "a.zst")])
def test_a_bomb_comes_in_blocks(pack: object, path: str) -> None:
    assert callable(pack)
    sizes = [len(block) for block in open_blocks(io.BytesIO(pack(b"\0" * (256 << 20))), path)]
    assert sum(sizes) == 256 << 20
    assert max(sizes) <= (128 << 20) + BLOCK_BYTES


def test_zstandard_is_only_needed_for_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert _read(GZ, "a.gz")[1] == ""
    with pytest.raises(MissingDependency, match=r"headrace\[pipelines\]"):
        _read(ZST, "a.zst")


def test_the_ending_tells() -> None:
    assert [is_compressed(path) for path in ("a.gz", "a.ZST", "a.jsonl", "gz")] == [True, True, False, False]
