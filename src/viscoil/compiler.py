"""The kernel compiler, made to start faster: it is told, or remembers, what it would look up again and again.

Imported before anything that defines kernels. Results do not depend on it: the shortcuts give the answers of what they
stand for, and where another version of the compiler has no such place, nothing is changed.
"""

import ast
import functools
import os
import sys
import textwrap
import warnings
from dataclasses import dataclass
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from quadrants.lang import _func_base, _kernel_impl_dataclass, _ndarray, impl, kernel_impl, matrix

from viscoil.turns import turn

kernel = import_module("quadrants.lang.kernel")  # the name of the module is also that of a function

WORTH_SAVING = 2.0  # seconds of compiling after which saving is worth its tenth of a second


@dataclass
class Counts:
    """Variants of our kernels this process has met."""

    read: int = 0  # from their sources
    loaded: int = 0  # ready-made, from the cache


counts = Counts()
_saved_at = 0.0  # seconds of compiling up to the last save
_savers: list[int] = []  # processes that save


def leave_graphs() -> None:
    """Kernels are launched loop by loop from now on."""
    kernel._GRAPH_ENABLED = False


def _shorten_class_check() -> None:
    """Whether a decorated function stands inside a class: none does whose caller's caller is the import machinery.

    The compiler asks ``inspect`` for the source line of that frame; of a frozen module there is none, and finding that
    out means looking through all modules, for each of some hundred functions: a tenth of a warm start.
    """
    asked = getattr(kernel_impl, "_inside_class", None)
    if asked is None:
        return

    def inside_class(level_of_class_stackframe: int) -> bool:
        try:
            frame = sys._getframe(level_of_class_stackframe)
        except ValueError:  # a kernel of the script that was started: nobody called it
            return False
        if frame.f_code.co_filename.startswith("<frozen "):
            return False
        return asked(level_of_class_stackframe + 1)  # one frame more: this function's

    kernel_impl._inside_class = inside_class


def _remember_sources() -> None:
    """A function's source is cut out of its file once, not once per call in a kernel: a fifth of reading kernels."""
    asked = getattr(_func_base, "get_source_info_and_src", None)
    if asked is None:
        return
    remembering = functools.cache(asked)
    _func_base.get_source_info_and_src = remembering
    if getattr(kernel, "get_source_info_and_src", None) is asked:
        kernel.get_source_info_and_src = remembering


def _wrap_once() -> None:
    """Lines of sources are unfolded once, not once per call in a kernel: a twelfth of reading kernels."""
    if getattr(_func_base, "textwrap", None) is textwrap:
        _func_base.textwrap = SimpleNamespace(fill=functools.cache(textwrap.fill), dedent=functools.cache(textwrap.dedent))


def _flatten_in_place() -> None:
    """Members of tables become names by one walk over a function's tree instead of two: a sixth of reading kernels.

    The second one would give new nodes a place in the source, which they have from the members they stand for.
    """
    flattener = getattr(_kernel_impl_dataclass, "FlattenAttributeNameTransformer", None)
    if not hasattr(flattener, "_flatten_attribute_name") or getattr(_kernel_impl_dataclass, "ast", None) is not ast:
        return

    def visit(self: Any, tree: ast.AST) -> ast.AST:
        todo = [tree]

        def flat(node: Any) -> Any:
            if isinstance(node, ast.Attribute):
                name = flattener._flatten_attribute_name(node)
                if name and name in self.struct_locals:
                    return ast.copy_location(ast.Name(id=name, ctx=node.ctx), node)
            todo.append(node)
            return node

        while todo:
            node = todo.pop()
            for field in node._fields:
                value = getattr(node, field, None)
                if isinstance(value, list):
                    value[:] = [flat(item) if isinstance(item, ast.AST) else item for item in value]
                elif isinstance(value, ast.AST):
                    setattr(node, field, flat(value))
        return tree

    flattener.visit = visit
    _kernel_impl_dataclass.ast = SimpleNamespace(**{**vars(ast), "fix_missing_locations": lambda tree: tree})


def _forget_callers() -> None:
    """New arrays are not told who asked for them.

    The compiler writes down the whole stack of callers for every array it makes, as text for messages of a debugger that is
    never on here: nine tenths of the time of making an array, and a simulation makes hundreds.
    """
    for module in (_ndarray, matrix):
        if hasattr(module, "get_traceback"):
            module.get_traceback = lambda stacklevel=1: ""


def _count() -> None:
    """Keeps :data:`counts`: one look at the cache per kernel and variant."""
    asked = getattr(kernel.Kernel, "_try_load_fastcache", None)
    if asked is None:
        return

    def load(self: Any, *arguments: Any) -> Any:
        found = asked(self, *arguments)
        if self.func.__module__.startswith("viscoil."):
            counts.loaded += found is not None
            counts.read += found is None
        return found

    kernel.Kernel._try_load_fastcache = load


def _launch_in_turn() -> None:
    """Compiling and launching a kernel change its tables: one thread at a time does (turns.py)."""
    launch = kernel.Kernel.__call__

    def launch_in_turn(self: Any, *arguments: Any, **named: Any) -> Any:
        with turn:
            return launch(self, *arguments, **named)

    kernel.Kernel.__call__ = launch_in_turn


@turn
def save(wait: bool = False) -> bool:
    """Writes what was compiled so far to the cache, if it is worth it; True when something is being written.

    ``wait``: write also what is hardly worth it, and wait until it is there.

    The compiler does so when a process ends, and forgets what it holds by doing so. A copy of the process writes instead:
    one that is killed later has then not compiled in vain, and others find the kernels while this one goes on. CPU only,
    where a process can be copied.
    """
    global _saved_at
    while _savers and os.waitpid(_savers[0], 0 if wait else os.WNOHANG)[0]:
        _savers.pop(0)
    program = impl.get_runtime().prog
    spent = program.get_total_compilation_time() if program else 0.0
    if _savers or spent - _saved_at < (1e-6 if wait else WORTH_SAVING) or sys.platform != "linux":
        return False
    _saved_at = spent
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # copies of processes with threads: it uses none of them
        saver = os.fork()
    if saver == 0:
        try:
            program.dump_cache_data_to_disk()
        finally:
            os._exit(0)
    if wait:
        os.waitpid(saver, 0)
    else:
        _savers.append(saver)
    return True


_shorten_class_check()
_remember_sources()
_wrap_once()
_flatten_in_place()
_forget_callers()
_launch_in_turn()
_count()
