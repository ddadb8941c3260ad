"""Parse einsum subscripts: the labels of all axes, and their extents."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

from metalloid.arrays.ir.layout import Ints

#: Label of an axis: a letter, or a negative number for the axes of an ellipsis.
Label = str | int
Labels = tuple[Label, ...]


def read(text: str, shapes: Sequence[Ints]) -> tuple[list[Labels], Labels]:
    """Return the labels of the operands' axes and of the result's."""
    inputs, arrow, output = text.replace(" ", "").partition("->")
    words = inputs.split(",")
    for letter in itertools.chain(*(word.replace("...", "") for word in (*words, output))):
        if not letter.isalpha():
            raise ValueError(f"[einsum] {text!r}: {letter!r} is not a letter.")
    if len(words) != len(shapes):
        raise ValueError(f"[einsum] {text!r} names {len(words)} operands, got {len(shapes)}.")
    labels = [
        _labels(text, word, k, len(shapes[k]) - len(word.replace("...", "")))
        for k, word in enumerate(words)
    ]
    others = sorted({label for own in labels for label in own if isinstance(label, int)})
    if not arrow:
        letters = Counter(label for own in labels for label in own if isinstance(label, str))
        output_labels: Labels = (*others, *sorted(k for k, times in letters.items() if times == 1))
    elif others and "..." not in output:
        raise ValueError(f"[einsum] {text!r}: the operands have '...', the result does not.")
    else:
        before, _, after = output.partition("...")
        output_labels = (*before, *others, *after) if "..." in output else tuple(output)
    for label in output_labels:
        if output_labels.count(label) > 1:
            raise ValueError(f"[einsum] {text!r}: the result names {label!r} twice.")
        if not any(label in own for own in labels):
            raise ValueError(f"[einsum] {text!r}: no operand has {label!r} of the result.")
    return labels, output_labels


def _labels(text: str, word: str, operand: int, others: int) -> Labels:
    """Return the labels of an operand with `others` axes that have no letter."""
    before, dots, after = word.partition("...")
    if others < 0 or (others and not dots) or "." in after:
        letters = len(word.replace(".", ""))
        raise ValueError(
            f"[einsum] {text!r}: {word!r} does not fit operand {operand}, which has "
            f"{letters + others} axes."
        )
    return (*before, *range(-others, 0), *after)


def extents_of(text: str, labels: Sequence[Labels], shapes: Sequence[Ints]) -> dict[Label, int]:
    """Return the broadcast extent of each label."""
    extents: dict[Label, int] = {}
    for operand, (own, shape) in enumerate(zip(labels, shapes, strict=True)):
        for label, extent in zip(own, shape, strict=True):
            known = extents.setdefault(label, extent)
            if extent not in (1, known) and known != 1:
                name = f"{label!r}" if isinstance(label, str) else "an axis of '...'"
                raise ValueError(
                    f"[einsum] {text!r}: {name} has extent {known}, but {extent} in operand "
                    f"{operand} of shape {shape}."
                )
            if known == 1:
                extents[label] = extent
    return extents
