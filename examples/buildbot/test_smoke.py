"""The smallest suite: replace it with your device's (examples/model-validation is one to copy)."""
import os


def test_the_change_is_checked_out():
    assert os.listdir('.')


def test_arithmetic():
    assert sum(range(10)) == 45
