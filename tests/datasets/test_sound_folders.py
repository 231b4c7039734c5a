"""A folder of `.wav` files is described before there are scores."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli.main import main


def sound(path: Path, seconds: float = 0.5, rate: int = 8000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * int(seconds * rate)))


def test_sounds_in_folders_of_classes_are_described(tmp_path, capsys):
    for name, n in (("owl", 3), ("wren", 2)):
        for i in range(n):
            sound(tmp_path / "birds" / name / f"{i}.wav", seconds=0.5 + i)
    sound(tmp_path / "birds" / "wren" / "deeper" / "x.WAV", rate=16000)
    assert main(["data", str(tmp_path / "birds")]) == 0
    text = capsys.readouterr().out
    for part in (
        "folder of sounds birds",
        "6 .wav files",
        "0.5 to 2.5 s",
        "8000 Hz, 16000 Hz",
        "classes: 2",
        "owl/0.wav: owl",
    ):
        assert part in text
    assert main(["data", str(tmp_path / "birds"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == [{"class": "owl", "rows": 3}, {"class": "wren", "rows": 3}]


def test_splits_files_of_no_class_and_damaged_ones_are_told(tmp_path):
    for split, n in (("train", 2), ("test", 1)):
        for name in ("owl", "wren"):
            for i in range(n):
                sound(tmp_path / split / name / f"{i}.wav")
    sound(tmp_path / "loose.wav")
    (tmp_path / "test" / "owl" / "bad.wav").write_bytes(b"RIFF")
    about = wb.describe(tmp_path)
    assert about.classes.to_dict("list") == {"class": ["owl", "wren"], "train": [2, 2], "test": [2, 1]}
    assert about.facts["without a class"].startswith("1,")
    assert about.facts["cannot be read"].startswith("1: test/owl/bad.wav")
    assert about.lorenz.subtitle == "n = 4 training rows of 2 classes"


def test_sounds_beside_each_other_have_no_class(tmp_path):
    sound(tmp_path / "a.wav")
    about = wb.describe(tmp_path)
    assert about.facts["without a class"] == "all 1"
    assert about.counts is None
    assert "a.wav: no class" in repr(about)


def test_a_folder_without_sounds_is_refused_as_before(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match="which is not a dataset"):
        wb.describe(tmp_path)


def test_the_sounds_of_class_folders_are_the_rows_of_a_table(tmp_path):
    for name in ("owl", "wren"):
        sound(tmp_path / name / "0.wav")
    table = wb.LogitTable([[1.0, 0.0], [0.0, 1.0]], sounds=tmp_path)
    assert [Path(path).parent.name for path in table.sounds.tolist()] == ["owl", "wren"]
