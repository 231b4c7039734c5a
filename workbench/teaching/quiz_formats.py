"""The quiz for elsewhere: as Markdown for paper, and as XML that Moodle imports."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from workbench.teaching.base import Choice, Question, Target


def markdown(questions: Sequence[Question]) -> str:
    """All questions, then all answers with why the others are wrong."""
    asked, told = ["# Quiz", ""], ["", "# Answers", ""]
    for number, question in enumerate(questions, start=1):
        asked += [f"{number}. {question.text}", ""]
        if question.target:
            told += [
                f"{number}. {question.target.within} *Below:* {question.target.below} *Above:* {question.target.above}",
                "",
            ]
            continue
        letters = "abcdefgh"[: len(question.choices)]
        asked += [f"    - ({letter}) {choice.text}" for letter, choice in zip(letters, question.choices, strict=True)]
        told += [
            f"{number}. "
            + " ".join(_judged(letter, choice) for letter, choice in zip(letters, question.choices, strict=True)),
            "",
        ]
        asked.append("")
    return "\n".join([*asked, *told]).rstrip() + "\n"


def _judged(letter: str, choice: Choice) -> str:
    return f"({letter}) {'**right**: ' if choice.right else ''}{choice.why}"


def moodle(questions: Sequence[Question]) -> str:
    """The quiz as Moodle XML: what is clicked is a multiple choice, what is moved a number with a tolerance."""
    quiz = ET.Element("quiz")
    for number, question in enumerate(questions, start=1):
        kind = "numerical" if question.target else "multichoice"
        element = ET.SubElement(quiz, "question", type=kind)
        _text(ET.SubElement(element, "name"), f"Sets {number:02}")
        _text(ET.SubElement(element, "questiontext", format="markdown"), question.text)
        if question.target:
            _numerical(element, question.target)
            continue
        ET.SubElement(element, "single").text = "true"
        ET.SubElement(element, "shuffleanswers").text = "1"
        for choice in question.choices:
            answer = ET.SubElement(element, "answer", fraction="100" if choice.right else "0", format="markdown")
            _text(answer, choice.text)
            _text(ET.SubElement(answer, "feedback", format="markdown"), choice.why)
    ET.indent(quiz)
    return ET.tostring(quiz, encoding="unicode", xml_declaration=True) + "\n"


def _numerical(element: ET.Element, target: Target) -> None:
    right = ET.SubElement(element, "answer", fraction="100")
    _text(right, f"{(target.low + target.high) / 2:.10g}")
    ET.SubElement(right, "tolerance").text = f"{(target.high - target.low) / 2:.10g}"
    _text(ET.SubElement(right, "feedback", format="markdown"), target.within)
    other = ET.SubElement(element, "answer", fraction="0")
    _text(other, "*")
    _text(ET.SubElement(other, "feedback", format="markdown"), f"If below: {target.below} If above: {target.above}")


def _text(element: ET.Element, text: str) -> None:
    ET.SubElement(element, "text").text = text
