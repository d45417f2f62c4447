"""Composition of prompts: pure, from gathered inputs. Knows no provider and no database."""
