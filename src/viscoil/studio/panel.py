"""The page's controls: transport, scene, physics, view, saving. They only post wishes; the studio decides."""

from typing import Any

from viscoil.scene.load import shipped
from viscoil.studio import colours
from viscoil.studio.messages import SceneInfo, Thing
from viscoil.studio.palette import Palette
from viscoil.studio.plots import Plots
from viscoil.studio.sliders import Sliders
from viscoil.studio.status import STYLE, Status, box

PACES = {"real time": 1.0, "half speed": 0.5, "a tenth": 0.1, "as fast as it can": None}
BLUE = (56, 132, 220)


class Panel:
    """Everything beside the picture. ``studio`` offers the wishes as methods."""

    def __init__(self, server: Any, studio: Any):
        from viser import Icon

        self._server, self._studio, self._icons = server, studio, Icon
        self._gui = gui = server.gui
        self._things: list[Any] = []
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=BLUE)
        gui.set_panel_label("viscoil studio")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(330)
        gui.add_html(STYLE)
        self._status = gui.add_html(Status().html())
        self._problem = gui.add_html("", visible=False)
        self._transport()
        tabs = gui.add_tab_group()
        with tabs.add_tab("Scene", Icon.PHOTO):
            self._scene_tab()
        with tabs.add_tab("Physics", Icon.ADJUSTMENTS_HORIZONTAL):
            self._physics_tab()
        with tabs.add_tab("View", Icon.EYE):
            self._view_tab()
        with tabs.add_tab("Save", Icon.DEVICE_FLOPPY):
            self._save_tab()
        side = gui.add_panel()
        with side.add_tab("Measured", Icon.CHART_LINE):
            self._legend = gui.add_html("")
            self.plots = Plots(gui)
        side.dock_left()
        side.set_width(270)

    # --- building ----------------------------------------------------------------------------------------------------
    def _transport(self) -> None:
        gui, studio = self._gui, self._studio
        self._play = gui.add_button("Play", color="teal", icon=self._icons.PLAYER_PLAY_FILLED)
        _on_click(self._play, lambda event: studio.toggle())
        moves = gui.add_button_group("", ("Step", "Frame", "Reset", "Reload"))
        wishes = {"Step": studio.step, "Frame": studio.step_frame, "Reset": studio.reset, "Reload": studio.reload}
        _on_click(moves, lambda event: wishes[event.target.value]())
        moves.hint = "one step · one frame · start again with all changes · read the file again"
        self._record = gui.add_button("Record", color="gray", icon=self._icons.PLAYER_RECORD)
        self._record.hint = "what is shown, as a page that plays anywhere"
        _on_click(self._record, lambda event: studio.toggle_recording(event.client))
        keys = {"Play or pause": ("space", studio.toggle), "Step": ("S", studio.step), "Frame": ("F", studio.step_frame)}
        for name, (key, wish) in {**keys, "Reset": ("R", studio.reset)}.items():
            command = gui.add_command(name, hotkey=key)
            _on_trigger(command, wish)
        self._pace = gui.add_dropdown("pace", tuple(PACES), initial_value="real time")
        _on_change(self._pace, lambda event: studio.pace(PACES[event.target.value]))

    def _scene_tab(self) -> None:
        gui, studio = self._gui, self._studio
        self._scenes = gui.add_dropdown("scene", ("", *shipped()), initial_value="")
        _on_change(self._scenes, lambda event: event.target.value and studio.load(event.target.value))
        self._quality = gui.add_dropdown("quality", ("quick",), initial_value="quick", visible=False)
        _on_change(self._quality, lambda event: studio.load(None, event.target.value))
        self._description = gui.add_html("")
        with gui.add_folder("from a file", expand_by_default=False):
            self.path = gui.add_text("path", "", hint="of a .toml on the computer the studio runs on")
            button = gui.add_button("Open", icon=self._icons.FOLDER_OPEN)
            _on_click(button, lambda event: studio.load(self.path.value))
            upload = gui.add_upload_button("Upload a .toml", icon=self._icons.UPLOAD, mime_type=".toml,application/toml")

            @upload.on_upload
            async def _(event: Any) -> None:
                studio.load_upload(event.target.value.name, event.target.value.content)

        self._notes = gui.add_html("", visible=False)

    def _physics_tab(self) -> None:
        gui, studio = self._gui, self._studio
        self.palette = Palette(gui, gui.add_folder("made of"), studio.set)
        place = gui.add_folder(None)
        self.sliders = Sliders(gui, place, studio.set)
        with gui.add_folder("any key", expand_by_default=False):
            key = gui.add_text("key = value", "", hint='e.g. solver.iterations = 8, material.honey.viscosity = "20 Pa s"')
            button = gui.add_button("Apply")
            _on_click(button, lambda event: studio.set_text(key.value))

    def _view_tab(self) -> None:
        gui, studio = self._gui, self._studio
        self._show = gui.add_dropdown("show", ("points", "surface"), initial_value="points")
        _on_change(self._show, lambda event: studio.show(event.target.value))
        self._colour = gui.add_dropdown("colour by", (colours.MATERIAL,), initial_value=colours.MATERIAL)
        _on_change(self._colour, lambda event: studio.colour_by(event.target.value))
        self._automatic = gui.add_checkbox("follow range", True, hint="off: keep the present range of the colours")
        _on_change(self._automatic, lambda event: studio.colour_range(event.target.value))
        self._size = gui.add_slider("point size", 0.2, 2.0, 0.05, 1.0, marks=(), hint="in particle spacings")
        _on_change(self._size, lambda event: studio.point_size(event.target.value))
        self._lit = gui.add_checkbox("lit points", True, hint="points shaded as the fluid they are part of")
        _on_change(self._lit, lambda event: studio.lit(event.target.value))
        shadows = gui.add_checkbox("shadows", True, hint="of surfaces; off is faster without a graphics card")
        _on_change(shadows, lambda event: studio.shadows(event.target.value))
        solids = gui.add_checkbox("solids", True)
        _on_change(solids, lambda event: studio.show_solids(event.target.value))
        button = gui.add_button("Look at it all", icon=self._icons.FOCUS_2)
        _on_click(button, lambda event: studio.look(event.client))
        self._handle_folder = gui.add_folder("handles to drag")

    def _save_tab(self) -> None:
        gui, studio = self._gui, self._studio
        picture = gui.add_button("Picture", icon=self._icons.CAMERA, hint="of this view, as PNG")

        @picture.on_click
        def _(event: Any) -> None:  # in a thread of its own: the browser takes a moment
            studio.save_picture(event.client)

        scene = gui.add_button("Scene as TOML", icon=self._icons.FILE_TEXT, hint="with all changes made here")
        _on_click(scene, lambda event: studio.save_scene(event.client))
        state = gui.add_button("Checkpoint", icon=self._icons.DEVICE_FLOPPY, hint="a run folder for viscoil run --resume")
        _on_click(state, lambda event: studio.save_checkpoint())
        self._keep = gui.add_button("Write frames", icon=self._icons.STACK_2)
        self._keep.hint = "every frame from now on into a run folder, for viscoil render and viscoil export"
        _on_click(self._keep, lambda event: studio.toggle_keeping())
        self._saved = gui.add_html("")

    # --- showing -----------------------------------------------------------------------------------------------------
    def scene(self, info: SceneInfo, fresh: bool) -> None:
        """A scene was built."""
        import html

        values = {control.path: control.value for group in info.groups for control in group.controls}
        if not fresh and set(values) == set(self.sliders.paths):
            self.sliders.show(values, at_once=True)
            return
        names = shipped()
        known = ("", *names) if info.source in names else ("", *names, info.source)
        self._scenes.options = known
        self._scenes.value = info.source
        self._quality.options, self._quality.visible = info.qualities or ("quick",), len(info.qualities) > 1
        self._quality.value = info.quality if info.quality in info.qualities else self._quality.options[0]
        self._description.content = f'<div class="vs-text">{html.escape(info.description)}</div>' if info.description else ""
        self.sliders.build(info.groups)
        self._colour.options = tuple(colours.choices(info.fields))

    def handles(self, things: tuple[Thing, ...], shown: list[str]) -> None:
        """One tick box per thing that can be dragged."""
        for box_ in self._things:
            box_.remove()
        self._things = []
        with self._handle_folder:
            for thing in things:
                tick = self._gui.add_checkbox(thing.name, thing.key in shown)
                _on_change(tick, lambda event, key=thing.key: self._studio.handle(key, event.target.value))
                self._things.append(tick)
        self._handle_folder.visible = bool(things)

    def status(self, status: Status) -> None:
        """Numbers and messages."""
        self._status.content = status.html()
        self._problem.content, self._problem.visible = box(status.problem, "problem"), bool(status.problem)
        notes = "\n".join(status.notes[-4:])
        self._notes.content, self._notes.visible = box(notes, "note"), bool(notes)
        playing = status.state in ("running", "compiling")
        self._play.label = "Pause" if playing else "Play"
        self._play.disabled = self._record.disabled = status.state == "empty"
        icons = self._icons
        icon = icons.PLAYER_PAUSE_FILLED if playing else icons.PLAYER_PLAY_FILLED
        if self._play.icon != icon:
            self._play.icon = icon
        self._keep.label = "Stop writing frames" if status.keeping else "Write frames"
        recording = status.recording is not None
        self._record.label, self._record.color = ("Stop recording", "red") if recording else ("Record", "gray")

    def saved(self, lines: list[str]) -> None:
        """Where files were written."""
        import html

        self._saved.content = "".join(f'<div class="vs-saved">{html.escape(line)}</div>' for line in lines[-6:])

    def legend(self, content: str) -> None:
        """What the colours mean."""
        self._legend.content = content

    def view(self, show: str, choice: str) -> None:
        """The view as a script set it."""
        self._show.value = show
        if choice in self._colour.options:
            self._colour.value = choice

    def tell(self, title: str, text: str, colour: str) -> None:
        """A message in the corner of every open page."""
        for client in self._server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=12.0, color=colour)


def _on_click(button: Any, wish: Any) -> None:
    """Calls ``wish(event)`` in order, on the server's own loop: it must not wait for anything."""

    @button.on_click
    async def _(event: Any) -> None:
        wish(event)


def _on_trigger(command: Any, wish: Any) -> None:
    """Calls ``wish()`` when a key is pressed or the command chosen from the page's palette."""

    @command.on_trigger
    async def _(event: Any) -> None:
        wish()


def _on_change(item: Any, wish: Any) -> None:
    """Calls ``wish(event)`` when a hand (not the program) changes an input."""

    @item.on_update
    async def _(event: Any) -> None:
        if event.client is not None:
            wish(event)
