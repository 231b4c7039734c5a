"""Writes docs/glossary.md from the one source of the words, workbench/glossary.py."""

from pathlib import Path

from workbench import glossary

Path(__file__).with_suffix(".md").write_text(glossary.markdown(), encoding="utf-8")
