"""The palette: what each material of the scene is made of, picked from the presets, with its colour and numbers."""

import html
from collections.abc import Callable
from typing import Any

from viscoil.controls import Ingredient
from viscoil.material import PRESETS

OWN = "its own numbers"  # of a material that is no preset, or no longer


class Palette:
    """One drop-down per material of the present scene. ``pick(path, preset)`` is called when a hand chooses."""

    def __init__(self, gui: Any, parent: Any, pick: Callable[[str, str], None]):
        self._gui, self._parent, self._pick = gui, parent, pick
        self._items: list[Any] = []
        self._choices: dict[str, Any] = {}
        self._swatches: dict[str, Any] = {}

    def show(self, ingredients: tuple[Ingredient, ...]) -> None:
        """The palette as the scene is now; built anew when it has other materials."""
        if list(self._choices) != [ingredient.name for ingredient in ingredients]:
            self._build(ingredients)
        for ingredient in ingredients:
            choice, wanted = self._choices[ingredient.name], ingredient.preset or OWN
            if choice.value != wanted:
                choice.value = wanted
            self._swatches[ingredient.name].content = swatch(ingredient)
        self._parent.visible = bool(ingredients)

    def _build(self, ingredients: tuple[Ingredient, ...]) -> None:
        for item in self._items:
            item.remove()
        self._items, self._choices, self._swatches = [], {}, {}
        with self._parent:
            for ingredient in ingredients:
                self._add(ingredient)

    def _add(self, ingredient: Ingredient) -> None:
        name = ingredient.name
        choice = self._gui.add_dropdown(
            name, (OWN, *PRESETS), initial_value=ingredient.preset or OWN,
            hint=f"what {name} is made of: colour, look and all numbers",
        )  # fmt: skip
        text = self._gui.add_html(swatch(ingredient))
        self._items += [choice, text]
        self._choices[name], self._swatches[name] = choice, text

        @choice.on_update
        async def _(event: Any) -> None:
            if event.client is not None and event.target.value in PRESETS:
                self._pick(f"material.{name}.preset", event.target.value)


def swatch(ingredient: Ingredient) -> str:
    """A dot of its colour and its numbers."""
    red, green, blue = (round(255 * part) for part in ingredient.colour)
    dot = f'<span class="vs-dot" style="background:rgb({red},{green},{blue})"></span>'
    return f'<div class="vs-swatch">{dot}{html.escape(ingredient.text)}</div>'
