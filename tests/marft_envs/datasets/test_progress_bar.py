"""The progress bar is on standard error, and only where a loop takes long."""

import threading

from marft_envs.datasets import progress_bar


def test_a_short_loop_shows_nothing(capsys):
    threads = threading.active_count()
    assert list(progress_bar.progress_bar(range(6), "gsm8k train")) == list(range(6))
    assert capsys.readouterr() == ("", "")
    assert threading.active_count() == threads


def test_a_long_loop_shows_its_progress_on_standard_error(monkeypatch, capsys):
    monkeypatch.setattr(progress_bar, "DELAY_S", 1e-9)
    assert list(progress_bar.progress_bar(range(6), "gsm8k train")) == list(range(6))
    out, err = capsys.readouterr()
    assert out == "" and "gsm8k train" in err and "6/6" in err
    for _ in progress_bar.progress_bar(range(6), "gsm8k train"):
        break  # a loop that is left early must not raise


def test_without_standard_error_nothing_is_shown(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    monkeypatch.setattr(progress_bar, "DELAY_S", 1e-9)
    assert list(progress_bar.progress_bar(range(3), "rows")) == [0, 1, 2]
