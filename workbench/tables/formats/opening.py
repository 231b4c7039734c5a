"""Opening a file of any format: its arrays or columns, or an error in words."""

from __future__ import annotations

from pathlib import Path

from workbench.tables.formats import FORMATS, SUFFIXES, Contents, Format, RefusedFile, Room


def contents_at(path: Path, columns: tuple[str, ...] = (), room: Room | None = None) -> Contents:
    """The arrays or columns of a file, as its format gives them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is of no format that is read, or damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    form = format_of(path)
    try:
        return form.read(path, room or Room(path.stat().st_size), columns)
    except RefusedFile as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Exception as error:  # each format has its own errors for a damaged file, and some have many
        raise ValueError(damaged(path, error)) from error


def format_of(path: Path) -> Format:
    """The format that a file has by its name.

    Raises:
        ValueError: it has none.
    """
    for form in FORMATS:
        if path.name.lower().endswith(form.suffixes):
            return form
    raise ValueError(
        f"{path.name}: files ending in {path.suffix or '(nothing)'} are not read; give one of {', '.join(SUFFIXES)} "
        "(pickles, .pt and .pkl among them, can run code and are never opened: save arrays with numpy.savez)"
    )


def damaged(path: Path, error: BaseException) -> str:
    """The message about a file that could not be read."""
    reason = (str(error).strip() or type(error).__name__).split("\n")[0][:300]
    return f"{path.name} could not be read as {path.suffix}: it is damaged, incomplete or something else ({reason})"
