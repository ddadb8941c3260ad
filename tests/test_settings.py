import os
import subprocess
import sys

import pytest

from metalloid.setting_parsers import parse_size
from metalloid.settings import Settings


def test_a_setting_comes_from_the_environment_until_it_is_set(monkeypatch):
    settings = Settings()
    monkeypatch.setenv("METALLOID_NUM_THREADS", "3")
    assert settings.num_threads == 3
    settings.num_threads = 5
    assert settings.num_threads == 5


def test_a_scope_ends(monkeypatch):
    monkeypatch.delenv("METALLOID_NUM_THREADS", raising=False)
    settings = Settings()
    with settings.scope(num_threads=2):
        assert settings.num_threads == 2
    assert settings.num_threads == 0


def test_nonsense_is_refused(monkeypatch):
    settings = Settings()
    monkeypatch.setenv("METALLOID_NUM_THREADS", "many")
    with pytest.raises(ValueError, match=r"METALLOID_NUM_THREADS='many' is not a valid value"):
        _ = settings.num_threads
    with (
        pytest.raises(AttributeError, match="there is no setting 'speed'"),
        settings.scope(speed=1),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("512M", 512 * 2**20), ("1.5g", 3 * 2**29), ("100", 100)]
)
def test_sizes(text, size):
    assert parse_size(text) == size


def test_choices_are_listed(monkeypatch):
    settings = Settings()
    choices = "it must be one of simd, reference"
    monkeypatch.setenv("METALLOID_CPU_ENGINE", "foo")
    with pytest.raises(
        ValueError, match=f"METALLOID_CPU_ENGINE='foo' is not a valid value; {choices}"
    ):
        _ = settings.cpu_engine
    with pytest.raises(ValueError, match=f"cpu_engine='foo' is not a valid value; {choices}"):
        settings.cpu_engine = "foo"
    settings.cpu_level = ""  # all that the CPU has
    settings.cpu_engine = "simd"


def test_misspelt_settings_are_refused():
    settings = Settings()
    with pytest.raises(AttributeError, match="no setting 'cache_dri'; did you mean 'cache_dir'"):
        settings.cache_dri = "/tmp"
    with pytest.raises(AttributeError, match="no setting 'timout'; did you mean 'timeout'"):
        _ = settings.timout
    assert not hasattr(settings, "nonsense")


def test_misspelt_variables_are_told():
    """A variable that resembles no setting belongs to another program."""
    environment = dict(os.environ, METALLOID_CPU_ENGIN="reference", METALLOID_QWERTY="1")
    done = subprocess.run(
        [sys.executable, "-c", "import metalloid; metalloid.config.timeout"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.count("Warning") == 1
    assert (
        "METALLOID_CPU_ENGIN is not a setting of metalloid; did you mean METALLOID_CPU_ENGINE?"
        in done.stderr
    )


def test_the_settings_are_shown_with_where_they_come_from(monkeypatch):
    monkeypatch.setenv("METALLOID_NUM_THREADS", "3")
    monkeypatch.delenv("METALLOID_TF32", raising=False)
    settings = Settings()
    settings.timeout = 2.0
    lines = repr(settings).splitlines()
    assert "  num_threads=3 (METALLOID_NUM_THREADS)" in lines
    assert "  timeout=2.0 (set)" in lines
    assert "  tf32=False" in lines


def test_every_setting_says_what_it_is():
    for name, variable, _, meaning in Settings().table():
        assert variable == "METALLOID_" + variable.removeprefix("METALLOID_")
        assert meaning.endswith("."), name
