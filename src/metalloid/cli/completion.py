"""``metalloid completion``: the words of the command line, for the shell's tab key."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

_BASH = """_metalloid() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" words=""
    if [ "$COMP_CWORD" -eq 1 ]; then words="{verbs}"; else
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
    fi
    case "$word" in -*) ;; *) [ "$COMP_CWORD" -gt 1 ] && words="" ;; esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _metalloid metalloid
"""


def add_verb(verbs: Any) -> None:
    """Add this verb to the command line."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "completion", help="print a script that completes verbs and options in a shell",
        description='For bash: eval "$(metalloid completion bash)". For zsh: the same with zsh.',
    )  # fmt: skip
    parser.add_argument("shell", choices=("bash", "zsh"))
    parser.set_defaults(act=lambda options: _act(options, verbs.choices))


def _act(options: argparse.Namespace, verbs: Mapping[str, argparse.ArgumentParser]) -> int:
    cases = [
        f'        {name}) words="{" ".join(sorted(parser._option_string_actions))}" ;;'
        for name, parser in verbs.items()
    ]
    script = _BASH.format(verbs=" ".join(verbs), cases="\n".join(cases))
    if options.shell == "zsh":
        script = "autoload -U +X bashcompinit && bashcompinit\n" + script
    print(script)
    return 0
