"""PNG, JPEG, WebP and BMP files: read by Pillow, and written by it but for PNG.

Where Pillow would drop the lower byte of 16-bit colours, both bytes are read, and `encode_png` writes them.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ell12.commands.exif import read_exif, upright, upright_xmp
from ell12.commands.pictures import ImageFileError, Notes, Picture, check_numbers, rounded
from ell12.commands.png import encode_png

QUALITY = 95  # of JPEG, and of WebP where it may lose: what is lost cannot be seen
# Pillow keeps notes of JPEG in one segment of 64 KB.
LONGEST_SEGMENT = 65500


def read_with_pillow(path: Path) -> Picture:
    """The content of a file that Pillow knows."""
    from PIL import Image, UnidentifiedImageError

    content = path.read_bytes()
    try:
        opened = _open(Image, content)
    except UnidentifiedImageError:
        raise ImageFileError(f"cannot read {path}: it is no image of a known kind") from None
    with opened as image:
        n_frames = getattr(image, "n_frames", 1)
        if image.format in ("PNG", "WEBP") and n_frames > 1:
            raise ImageFileError(f"cannot read {path}: it holds {n_frames} frames, not one image")
        raw = image.tile[0][3] if image.format == "PNG" and image.tile else ""  # until the pixels are loaded
        if image.format == "TIFF":
            image.load()  # after which newer versions of Pillow have turned it already
        orientation, exif = read_exif(image)
        if isinstance(raw, str) and raw.endswith(";16B"):
            pixels, key = _sixteen_bits(content, raw), image.info.get("transparency")
        else:
            pixels, key = check_numbers(np.asarray(_plain_mode(image)), path), None
        profile = None if image.mode in ("CMYK", "LAB") else image.info.get("icc_profile")  # now they are RGB
        notes = _notes(image, orientation, exif, content)
    return _split_opacity(np.ascontiguousarray(upright(pixels, orientation)), key, profile, notes)


def _open(Image: Any, content: bytes) -> Any:
    """The image, however large: the user chose the file, which Pillow cannot know."""
    limit, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
    try:
        return Image.open(io.BytesIO(content))
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def _notes(image: Any, orientation: int, exif: bytes, content: bytes) -> Notes:
    """What the file says besides its pixels; pixels per inch change places where the picture is turned."""
    xmp = upright_xmp(image.info.get("xmp") or image.info.get("XML:com.adobe.xmp"), orientation)
    dpi = image.info.get("dpi")
    across, down = map(float, dpi) if dpi else (0.0, 0.0)
    dpi = (down, across) if orientation >= 5 else (across, down)
    lossless = image.format not in ("JPEG", "MPO") and not (image.format == "WEBP" and _has_loss(content))
    return Notes(exif, xmp, dpi if across > 0 and down > 0 else None, lossless)


def _has_loss(content: bytes) -> bool:
    """Whether a WebP file keeps its pixels in the chunk "VP8 ", which loses, and not in "VP8L"."""
    place = 12
    while place + 8 <= len(content):
        name, size = content[place : place + 4], int.from_bytes(content[place + 4 : place + 8], "little")
        if name in (b"VP8 ", b"VP8L"):
            return name == b"VP8 "
        place += 8 + size + size % 2
    return True


def _plain_mode(image: Any) -> Any:
    """The image as grey or colours of 8 bits, or grey of 16, with opacity where a pixel may be transparent."""
    if image.mode.startswith("I;16"):
        return image
    if image.mode in ("L", "RGB", "LA", "RGBA") and "transparency" not in image.info:
        return image
    grey = image.mode in ("1", "L", "LA")
    opaque = image.mode not in ("LA", "PA", "RGBA", "RGBa", "La") and "transparency" not in image.info
    return image.convert(("L" if grey else "RGB") + ("" if opaque else "A"))


def _sixteen_bits(content: bytes, raw: str) -> np.ndarray:
    """The pixels of a PNG with 16 bits: Pillow keeps one byte of a colour, which one depends on the byte order."""
    if raw == "I;16B":
        return _decode(content, None).astype(np.uint16)
    if raw == "LA;16B":  # four bytes, as those of red, green, blue and opacity
        return np.ascontiguousarray(_decode(content, "RGBA")).view(">u2").astype(np.uint16)
    high, low = (_decode(content, raw[:-1] + order).astype(np.uint16) for order in "BL")
    return 256 * high + low


def _decode(content: bytes, raw: str | None) -> np.ndarray:
    from PIL import Image

    image: Any
    with _open(Image, content) as image:
        if raw is not None:
            image.tile = [(*tile[:3], raw) for tile in image.tile]
        return np.asarray(image)


def _split_opacity(pixels: np.ndarray, key: Any, profile: bytes | None, notes: Notes) -> Picture:
    """Colours and opacity; ``key`` is the one colour that a PNG may declare transparent."""
    n_channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    opacity = None
    if n_channels in (2, 4):
        pixels, opacity = pixels[..., :-1], pixels[..., -1]
        pixels = pixels[..., 0] if n_channels == 2 else pixels
    elif key is not None:
        seen = pixels != key if pixels.ndim == 2 else np.any(pixels != np.asarray(key), axis=-1)
        opacity = seen.astype(pixels.dtype) * np.iinfo(pixels.dtype).max
    return Picture(pixels, None if pixels.ndim == 2 else -1, opacity, profile, notes=notes)


# Writing


def encode_picture_as_png(picture: Picture, values: np.ndarray) -> bytes:
    """8 or 16 bits as the picture has them; floating point numbers become 16."""
    bits = np.uint8 if picture.pixels.dtype in (np.uint8, np.bool_) else np.uint16
    notes = picture.notes
    return encode_png(_with_opacity(picture, values, bits), picture.profile, notes.exif, notes.xmp, notes.dpi)


def encode_jpeg(picture: Picture, values: np.ndarray) -> bytes:
    """8 bits, colours at full resolution."""
    notes = picture.notes
    options: dict[str, Any] = {"quality": QUALITY, "subsampling": 0, "icc_profile": picture.profile}
    options |= {"exif": _short(notes.exif, "EXIF"), "xmp": _short(notes.xmp, "XMP")}
    return _saved(picture, values, "JPEG", options | _resolution(notes))


def encode_webp(picture: Picture, values: np.ndarray) -> bytes:
    """8 bits, without loss if the picture's file had none; colours of transparent pixels stay too."""
    notes = picture.notes
    options: dict[str, Any] = {"lossless": notes.lossless, "exact": True, "quality": QUALITY, "method": 4}
    options |= {"icc_profile": picture.profile, "exif": notes.exif, "xmp": notes.xmp}
    return _saved(picture, values, "WEBP", options)


def encode_bmp(picture: Picture, values: np.ndarray) -> bytes:
    """8 bits; the format has no place for notes, but for pixels per inch."""
    return _saved(picture, values, "BMP", _resolution(picture.notes))


def _with_opacity(picture: Picture, values: np.ndarray, bits: Any) -> np.ndarray:
    """Integers of so many bits, the colours last and the opacity behind them; one colour is grey."""
    if picture.channel_axis is not None:
        values = np.moveaxis(values, picture.channel_axis, -1)
        values = values[..., 0] if values.shape[-1] == 1 and picture.opacity is None else values
    return rounded(picture.joined(values), bits)


def _saved(picture: Picture, values: np.ndarray, form: str, options: dict[str, Any]) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    pixels = _with_opacity(picture, values, np.uint8)
    Image.fromarray(pixels).save(file, form, **{key: value for key, value in options.items() if value != b""})
    return file.getvalue()


def _resolution(notes: Notes) -> dict[str, Any]:
    return {} if notes.dpi is None else {"dpi": notes.dpi}


def _short(content: bytes, name: str) -> bytes:
    """Notes that fit in a segment of a JPEG."""
    if len(content) <= LONGEST_SEGMENT:
        return content
    warnings.warn(f"the {name} data are left out: JPEG has no place for {len(content)} bytes", stacklevel=2)
    return b""
