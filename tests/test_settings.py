import pytest

from metalloid.settings import Settings, parse_size


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
    with pytest.raises(ValueError, match=r"METALLOID_NUM_THREADS='many' is no valid value"):
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


def test_every_setting_says_what_it_is():
    for name, variable, _, meaning in Settings().table():
        assert variable == "METALLOID_" + variable.removeprefix("METALLOID_")
        assert meaning.endswith("."), name
