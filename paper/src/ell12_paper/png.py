"""PNG files with 8 or 16 bits per channel."""

from __future__ import annotations

import struct
import zlib

import numpy as np

_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by the number of channels: grey, grey and opacity, colour, both
_UP = 2  # the filter that stores the difference to the row above


def encode_png(
    pixels: np.ndarray,
    profile: bytes | None = None,
    exif: bytes = b"",
    xmp: bytes = b"",
    dpi: tuple[float, float] | None = None,
) -> bytes:
    """A PNG file of 8 or 16 bits, grey or colour, with or without opacity (Pillow has no colours of 16 bits).

    Parameters
    ----------
    pixels : array of uint8 or uint16, shape (rows, columns) or (rows, columns, channels)
        One to four channels: grey, grey and opacity, colour, colour and opacity.
    profile : bytes, optional
        The colour profile (ICC).
    exif, xmp : bytes, default b""
        Notes of cameras and of editing programs.
    dpi : tuple of two numbers, optional
        Pixels per inch, along a row and along a column.

    Examples
    --------
    >>> import numpy as np
    >>> from ell12_paper.png import encode_png
    >>> encode_png(np.zeros((2, 2), dtype=np.uint16))[1:4]
    b'PNG'
    """
    rows, columns = pixels.shape[:2]
    n_channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    bits = 8 * pixels.dtype.itemsize
    header = struct.pack(">IIBBBBB", columns, rows, bits, _COLOUR_TYPES[n_channels], 0, 0, 0)
    chunks = [_chunk(b"IHDR", header)]
    if profile:
        chunks.append(_chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(profile)))
    if dpi:
        per_metre = [round(value / 0.0254) for value in dpi]
        chunks.append(_chunk(b"pHYs", struct.pack(">IIB", *per_metre, 1)))
    if exif:
        chunks.append(_chunk(b"eXIf", exif.removeprefix(b"Exif\0\0")))
    if xmp:
        chunks.append(_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp))
    chunks += [_chunk(b"IDAT", zlib.compress(_filtered(pixels), 6)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _filtered(pixels: np.ndarray) -> bytes:
    """Each row, its bytes big-endian, as the difference to the row above, behind the number of that filter."""
    big_endian = np.ascontiguousarray(pixels, dtype=pixels.dtype.newbyteorder(">"))
    rows = big_endian.reshape(len(pixels), -1).view(np.uint8)
    filtered = np.empty((len(rows), rows.shape[1] + 1), dtype=np.uint8)
    filtered[:, 0], filtered[:, 1:] = _UP, rows
    filtered[1:, 1:] -= rows[:-1]
    return filtered.tobytes()


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
