"""Writes src/viscoil/sph/wide_*.bc from wide.ll: ``pip install llvmlite && python benchmarks/wide_bitcode.py``.

Bitcode and not text, because the kernel compiler reads nothing else without tools of its own installed beside it.
"""

from pathlib import Path

import llvmlite.binding as llvm

FOLDER = Path(__file__).parent.parent / "src" / "viscoil" / "sph"
TARGETS = {
    "cuda": ("nvptx64-nvidia-cuda", "e-p6:32:32-i64:64-i128:128-v16:16-v32:32-n16:32:64", "addrspace(1)"),
    "x64": (
        "x86_64-unknown-linux-gnu",
        "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
        "",
    ),
}

text = (FOLDER / "wide.ll").read_text()
for name, (target, layout, space) in TARGETS.items():
    filled = text.replace("@TARGET@", target).replace("@LAYOUT@", layout).replace("@SPACE@", space)
    module = llvm.parse_assembly("\n".join(line for line in filled.splitlines() if not line.startswith(";")))
    module.verify()
    (FOLDER / f"wide_{name}.bc").write_bytes(module.as_bitcode())
