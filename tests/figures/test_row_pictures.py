"""A row is a picture, a text, a drawing, a sound or a line of a table, and shows itself."""

from __future__ import annotations

import wave

import numpy as np
import pytest

import workbench as wb
from workbench.drawings import drawing_to_text
from workbench.figures.data.row_pictures import PAPER, SIDE, row_pictures, stroke_picture, waveform
from workbench.metrics.row_texts import largest_features
from workbench.metrics.rows import RowFilter

SCORES = np.log([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8]])


@pytest.fixture
def sounds(tmp_path):
    """A folder of three tones, the second one louder at its end."""
    for number in range(3):
        with wave.open(str(tmp_path / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            tone = np.sin(np.arange(800)) * np.linspace(0.1, 1, 800) ** number
            file.writeframes((20_000 * tone).astype("<i2").tobytes())
    return tmp_path


def ink(picture):
    return (picture != PAPER).any(axis=-1)


def test_strokes_fill_the_picture_and_keep_their_shape():
    drawn = ink(stroke_picture(drawing_to_text([[(0, 5), (10, 5)]])))
    rows, columns = np.nonzero(drawn)
    assert np.ptp(columns) > 0.8 * SIDE
    assert np.ptp(rows) < 0.1 * SIDE
    assert abs(rows.mean() - SIDE / 2) < 2
    assert not ink(stroke_picture("no drawing")).any()


def test_a_sound_shows_how_loud_it_is_along_its_time_and_a_folder_of_them_is_taken(sounds):
    table = wb.LogitTable(SCORES, sounds=sounds)
    assert [path[-5:] for path in table.sounds.tolist()] == ["0.wav", "1.wav", "2.wav"]
    heights = ink(row_pictures(table)[2:][0]).sum(axis=0)
    assert heights[SIDE - 30] > 3 * heights[30]
    assert ink(waveform(str(sounds / "missing.wav"))).any()  # says what is wrong


def test_a_folder_without_sounds_and_a_text_in_place_of_texts_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"holds no \.wav file"):
        wb.LogitTable(SCORES, sounds=tmp_path)
    with pytest.raises(TypeError, match="one text per row"):
        wb.LogitTable(SCORES, texts="Peru")
    with pytest.raises(TypeError, match="row 1 holds 3"):
        wb.LogitTable(SCORES, texts=["a", 3, "b"])
    with pytest.raises(ValueError, match="texts has 2 entries"):
        wb.LogitTable(SCORES, texts=["a", "b"])


def test_texts_are_searched_in_any_case_and_drawn_on_a_sheet_of_samples(tmp_path):
    table = wb.LogitTable(SCORES, [0, 0, 1], texts=["Peru", "Περού", "Chile and Peru"])
    sets = wb.TopK(1).fit(table)(table)
    assert RowFilter(text="peru").rows(sets).tolist() == [0, 2]
    assert RowFilter(text="ΠΕΡΟΎ").rows(sets).tolist() == [1]
    figure = wb.figures.samples(sets, rows=[0, 2])
    assert figure.photos.shape == (2, SIDE, SIDE, 3)
    assert ink(figure.photos[0]).any()
    table.save(tmp_path / "table")
    assert wb.LogitTable.load(tmp_path / "table").texts.tolist() == table.texts.tolist()


def test_texts_and_strokes_are_read_from_columns_of_a_csv(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('text,label,a,b\n"Peru, a country",a,0.7,0.3\n,b,0.2,0.8\n', encoding="utf-8")
    table = wb.import_table(path)
    assert table.texts.tolist() == ["Peru, a country", ""]
    assert "texts from text" in table.note


def test_twenty_thousand_texts_take_the_room_they_need(tmp_path):
    texts = ["word " * (row % 200) for row in range(20_000)]
    table = wb.LogitTable(np.zeros((20_000, 3)), texts=texts)
    table.save(tmp_path / "table")
    written = (tmp_path / "table" / "texts.npy").stat().st_size
    assert written < 1.01 * sum(map(len, texts)) + 1000
    read = wb.LogitTable.load(tmp_path / "table")
    assert read.texts[[199, 3]].tolist() == [texts[199], texts[3]]


def test_a_line_of_a_table_tells_its_largest_numbers_in_deviations():
    inputs = np.zeros((5, 3))
    inputs[2] = (0, 7, -1)
    (told,) = largest_features(inputs, [2], ["a", "b", "c"])
    assert told == "b = 7 (+2.0 sd), c = -1 (−2.0 sd), a = 0 (+0.0 sd)"
