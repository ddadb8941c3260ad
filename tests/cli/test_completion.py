"""The shell completes verbs and options."""

import shutil
import subprocess

import pytest

from metalloid.cli.main import main


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["com"], {"compile", "completion"}),
        (["compile", "--tar"], {"--target"}),
        (["run", "--thr"], {"--threads"}),
        (["run", "file"], set()),
    ],
)
def test_bash(capsys, words, expected):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    call = f'COMP_WORDS=(metalloid {" ".join(words)}); COMP_CWORD={len(words)}; _metalloid; echo "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script + call], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == expected
