"""Lessons: ten short stories, each with a question to answer first, and a quiz."""

from views.lessons.lesson_view import PARTS, page

__all__ = ["PARTS", "page"]
