"""OME-XML, the description in an OME-TIFF: how large a voxel is, and the description of a restored copy."""

from __future__ import annotations

import math
from typing import Any

# Units of length, in micrometres; the symbols of the OME schema that microscopes write.
MICROMETRES = {"pm": 1e-6, "Å": 1e-4, "nm": 1e-3, "µm": 1.0, "μm": 1.0, "um": 1.0, "mm": 1e3, "cm": 1e4, "m": 1e6}
KINDS = {"float32": "float", "float64": "double", "bool": "bit"}  # other kinds have NumPy's names


def spacing_of(xml: str) -> dict[str, float]:
    """The size of a voxel along each axis of space, in micrometres where the unit is one of length.

    Examples
    --------
    >>> from ell12.commands.ome import spacing_of
    >>> spacing_of('<OME><Pixels PhysicalSizeX="2" PhysicalSizeZ="500" PhysicalSizeZUnit="nm"/></OME>')
    {'Z': 0.5, 'X': 2.0}
    """
    from xml.etree import ElementTree

    pixels = _pixels(ElementTree.fromstring(xml))
    found = {axis: float(pixels.get(f"PhysicalSize{axis}", 0)) for axis in "ZYX"}
    sizes = {axis: size for axis, size in found.items() if 0 < size < math.inf}
    units = {axis: pixels.get(f"PhysicalSize{axis}Unit", "µm") for axis in sizes}
    if len(set(units.values())) > 1 and not set(units.values()) <= set(MICROMETRES):
        return {}  # they cannot be compared
    return {axis: size * MICROMETRES.get(units[axis], 1.0) for axis, size in sizes.items()}


def description_of(xml: str, kind: Any) -> bytes:
    """The description for a file whose pages follow each other in the order of the axes, all else as it was.

    A description says in which pages of which files the planes are. Those are pages of the old file.
    """
    from xml.etree import ElementTree

    root = ElementTree.fromstring(xml)
    space = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else ""
    if space:
        ElementTree.register_namespace("", space)
    root.attrib.pop("UUID", None)  # the name of the old file
    pixels = _pixels(root)
    for place in [child for child in pixels if child.tag.endswith(("TiffData", "BinData", "MetadataOnly"))]:
        pixels.remove(place)
    count = math.prod(int(pixels.get(f"Size{axis}", 1)) for axis in "CZT")
    samples = next((int(c.get("SamplesPerPixel", 1)) for c in pixels if c.tag.endswith("Channel")), 1)
    pages = ElementTree.Element(
        f"{{{space}}}TiffData" if space else "TiffData", IFD="0", PlaneCount=str(count // samples)
    )
    channels = [k for k, child in enumerate(pixels) if child.tag.endswith("Channel")]
    pixels.insert(channels[-1] + 1 if channels else 0, pages)
    pixels.set("Type", KINDS.get(str(kind), str(kind)))
    pixels.attrib.pop("BigEndian", None)
    return ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)


def _pixels(root: Any) -> Any:
    """The one element that describes the pixels."""
    return next(element for element in root.iter() if element.tag.endswith("Pixels"))
