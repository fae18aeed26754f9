"""Built-in models by name, whose files are imported when they are built."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from channels.concurrency import cached_property, parsing

if TYPE_CHECKING:
    import torch


class BuiltIn:
    """The class of a built-in model, called like the class itself.

    Its description and the names of its settings are read from the source, because importing the
    file loads PyTorch, which takes seconds: help, lists and prices do without it.

    Args:
        module: the file, as a module.
        name: name of the class.
        default_tokenizer: tokenizer of a run that names none; None for that of the data set.
    """

    def __init__(self, module: str, name: str, default_tokenizer: str | None = None) -> None:
        self.module, self.name, self.default_tokenizer = module, name, default_tokenizer

    def __call__(self, *args: Any, **settings: Any) -> torch.nn.Module:
        """Build the module; arguments and errors are those of the class."""
        module: torch.nn.Module = getattr(import_module(self.module), self.name)(*args, **settings)
        return module

    @cached_property
    def _class(self) -> ast.ClassDef:
        spec = find_spec(self.module)
        assert spec is not None
        source = spec.loader.get_source(self.module)  # type: ignore[union-attr]
        with parsing:
            tree = ast.parse(source)
        classes = (node for node in tree.body if isinstance(node, ast.ClassDef))
        return next(node for node in classes if node.name == self.name)

    @cached_property
    def __doc__(self) -> str | None:
        """The docstring of the class."""
        return ast.get_docstring(self._class)

    @cached_property
    def __signature__(self) -> Signature:
        """The arguments of the class, without their defaults."""
        functions = (node for node in self._class.body if isinstance(node, ast.FunctionDef))
        arguments = next(node for node in functions if node.name == "__init__").args
        return Signature(
            [
                Parameter(argument.arg, Parameter.POSITIONAL_OR_KEYWORD)
                for argument in arguments.args[1:]
            ]
            + [Parameter(argument.arg, Parameter.KEYWORD_ONLY) for argument in arguments.kwonlyargs]
        )
