"""Materials of a USD stage: one UsdPreviewSurface per look, which Blender, Houdini and usdview all understand."""

from typing import Any

from viscoil.extras import require
from viscoil.io.moment import Body, Colour, linear, look_of
from viscoil.looks import Look

_OPACITY = {"clear": 0.45, "milky": 1.0, "matt": 1.0}  # the preview surface knows no absorption: a compromise


class Looks:
    """Makes materials when they are first bound."""

    def __init__(self, stage: Any, scope: str) -> None:
        self.Sdf, self.Gf, self.Tf, self.UsdGeom, self.UsdShade = (
            require(f"pxr.{name}", "to write USD") for name in ("Sdf", "Gf", "Tf", "UsdGeom", "UsdShade")
        )
        self.stage, self.scope = stage, scope
        self.made: dict[str, Any] = {}

    def valid(self, name: str, taken: list[str]) -> str:
        """A prim name like ``name`` that is not taken."""
        wanted = self.Tf.MakeValidIdentifier(name)
        result, number = wanted, 1
        while result in taken:
            number += 1
            result = f"{wanted}_{number}"
        return result

    def prim_name(self, material: dict[str, Any]) -> str:
        """The name of the material's prim."""
        return self.Tf.MakeValidIdentifier(str(material.get("name") or "fluid"))

    def colour(self, material: dict[str, Any]) -> Colour:
        """sRGB colour the material is drawn in."""
        return look_of(material).colour or (0.7, 0.7, 0.7)

    def bind(self, prim: Any, material: dict[str, Any] | None) -> None:
        """Bind the material to a prim; None: one that takes the colours of the prim's points."""
        name = "by_colour" if material is None else self.prim_name(material)
        if name not in self.made:
            self.made[name] = self._make(name, look_of(material) if material else None)
        self._apply(prim, self.made[name])

    def bind_solid(self, prim: Any, body: Body) -> None:
        """Bind a plain material in the solid's colour, glass for containers."""
        name = self.valid(f"solid_{prim.GetPrim().GetName()}", list(self.made))
        look = Look("clear" if body.container else "matt", body.colour, index=1.5, roughness=0.05 if body.container else 0.5)
        self.made[name] = self._make(name, look, opacity=0.15 if body.container else None)
        self._apply(prim, self.made[name])

    def _apply(self, prim: Any, material: Any) -> None:
        self.UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)

    def _make(self, name: str, look: Look | None, opacity: float | None = None) -> Any:
        Types = self.Sdf.ValueTypeNames
        if not self.made:
            self.UsdGeom.Scope.Define(self.stage, self.scope)
        material = self.UsdShade.Material.Define(self.stage, f"{self.scope}/{name}")
        shader = self.UsdShade.Shader.Define(self.stage, f"{self.scope}/{name}/surface")
        shader.CreateIdAttr("UsdPreviewSurface")
        colour = shader.CreateInput("diffuseColor", Types.Color3f)
        if look is None:
            reader = self.UsdShade.Shader.Define(self.stage, f"{self.scope}/{name}/colour")
            reader.CreateIdAttr("UsdPrimvarReader_float3")
            reader.CreateInput("varname", Types.String).Set("displayColor")
            colour.ConnectToSource(reader.CreateOutput("result", Types.Float3))
        else:
            colour.Set(self.Gf.Vec3f(*linear(look.colour).tolist()))
            if look.glow:
                glow = [look.glow * part for part in linear(look.colour).tolist()]
                shader.CreateInput("emissiveColor", Types.Color3f).Set(self.Gf.Vec3f(*glow))
            shader.CreateInput("ior", Types.Float).Set(look.index)
            shader.CreateInput("opacity", Types.Float).Set(_OPACITY[look.kind] if opacity is None else opacity)
        shader.CreateInput("roughness", Types.Float).Set(look.roughness if look else 0.3)
        shader.CreateInput("metallic", Types.Float).Set(0.0)
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        return material
