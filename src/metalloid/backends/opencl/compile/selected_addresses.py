"""Addresses that a ``select`` chooses, as Intel's compiler for CPUs needs them.

Its vector code of a store to one of two addresses of a thread's own memory, chosen by ``select`` in
a branch that some threads take, stores to a wrong one. So it selects integers, and the address is
made of one.
"""

from __future__ import annotations

import re

_ADDRESS = (
    r"(?:%[\w.$-]+|%\"[^\"]*\"|@[\w.$-]+|"
    r"getelementptr(?: inbounds| nuw| nusw)* \((?:[^()]|(?<=addrspace)\(\d+\))*\))"
)
_SELECT = re.compile(
    r"^  %(?P<name>[\w.$-]+) = select i1 (?P<condition>[^,\n]+), (?P<type>ptr(?: addrspace\(4\))?) "
    rf"(?P<first>{_ADDRESS}), (?P=type) (?P<second>{_ADDRESS})(?:, ![^\n]*)?$", re.M,
)  # fmt: skip


def select_integers(ir: str) -> str:
    """The module in which the selected addresses of private and generic memory are integers."""
    return _SELECT.sub(
        r"  %first.\g<name> = ptrtoint \g<type> \g<first> to i64\n"
        r"  %second.\g<name> = ptrtoint \g<type> \g<second> to i64\n"
        r"  %bits.\g<name> = select i1 \g<condition>, i64 %first.\g<name>, i64 %second.\g<name>\n"
        r"  %\g<name> = inttoptr i64 %bits.\g<name> to \g<type>", ir,
    )  # fmt: skip
