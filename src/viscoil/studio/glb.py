"""A mesh with coloured vertices as the bytes of a binary glTF: what browsers draw with light, gloss and shadow."""

import json
import struct
from typing import Any

import numpy as np

FLOAT, USHORT, UINT = 5126, 5123, 5125


def glb(
    vertices: np.ndarray, triangles: np.ndarray, normals: np.ndarray, colours: np.ndarray, roughness: float = 0.3
) -> bytes:
    """vertices (v, 3) [m], triangles (t, 3), unit normals (v, 3), colours (v, 3) uint8 sRGB -> a .glb."""
    count = len(vertices)
    shade = np.empty((count, 4), "<u2")
    shade[:, :3], shade[:, 3] = _LINEAR[colours], 65535  # glTF wants linear light
    # Full precision: browsers compute normals again into the same array, from areas that may be square millimetres.
    sides = np.ascontiguousarray(normals, "<f4")
    points = np.ascontiguousarray(vertices, "<f4")
    chunks = [points.tobytes(), sides.tobytes(), shade.tobytes(), np.ascontiguousarray(triangles, "<u4").tobytes()]
    starts = np.cumsum([0, *(len(chunk) for chunk in chunks)]).tolist()
    low, high = (points.min(0), points.max(0)) if count else (np.zeros(3), np.zeros(3))
    views: list[dict[str, Any]] = [
        {"buffer": 0, "byteOffset": start, "byteLength": len(chunk)} for start, chunk in zip(starts, chunks, strict=False)
    ]
    document = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0, "NORMAL": 1, "COLOR_0": 2}, "indices": 3, "material": 0}]}],
        "materials": [{"pbrMetallicRoughness": {"metallicFactor": 0.0, "roughnessFactor": roughness}}],
        "buffers": [{"byteLength": starts[-1]}], "bufferViews": views,
        "accessors": [
            {"bufferView": 0, "componentType": FLOAT, "count": count, "type": "VEC3",
             "min": [float(x) for x in low], "max": [float(x) for x in high]},
            {"bufferView": 1, "componentType": FLOAT, "count": count, "type": "VEC3"},
            {"bufferView": 2, "componentType": USHORT, "normalized": True, "count": count, "type": "VEC4"},
            {"bufferView": 3, "componentType": UINT, "count": int(np.size(triangles)), "type": "SCALAR"},
        ],
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    data = b"".join(chunks)
    data += b"\0" * (-len(data) % 4)
    head = struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(text) + 8 + len(data))
    return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(data), b"BIN\0") + data


def _to_linear(value: np.ndarray) -> np.ndarray:
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


_LINEAR = np.round(65535 * _to_linear(np.arange(256) / 255)).astype("<u2")
