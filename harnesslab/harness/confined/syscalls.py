"""The system calls that confined code gives up, as a seccomp program.

Only numbers of calls that start processes, reach other ones, open sockets, or ask the kernel for rights and rarely
used services. Files are not among them: bubblewrap hides those. Linux on x86-64 and ARM64 only.
"""

from __future__ import annotations

import platform
import struct
import sys

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_CLONE_THREAD = 0x10000
_FOREIGN = 0x40000000
"""Calls of the 32-bit interface to 64-bit Linux start here."""

# name: (x86-64, ARM64); None if that architecture has no such call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "setsid": (112, 157),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "memfd_create": (319, 279),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "fsopen": (430, 430),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "reboot": (169, 142),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
}
_CLONE = (56, 220)
_CLONE3 = 435
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def program() -> bytes:
    """The filter for this machine, eight bytes an instruction; empty where there is none for it.

    A refused call fails with EPERM. ``clone`` may start threads but no processes, and ``clone3``, whose arguments a
    filter cannot read, does not exist.
    """
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return b""
    column, architecture = machine
    refuse = _step(_RETURN, _REFUSE | _EPERM)
    steps = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, 1, 0),
        refuse,
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, _FOREIGN, 0, 1),
        refuse,
        _step(_EQUAL, _CLONE3, 0, 1),
        _step(_RETURN, _REFUSE | _ENOSYS),
    ]
    for numbers in _REFUSED.values():
        number = numbers[column]
        if number is not None:
            steps += [_step(_EQUAL, number, 0, 1), refuse]
    steps += [
        _step(_EQUAL, _CLONE[column], 0, 3),
        _step(_LOAD, _FIRST_ARGUMENT),
        _step(_ANY_BIT, _CLONE_THREAD, 1, 0),
        refuse,
        _step(_RETURN, _ALLOW),
    ]
    return b"".join(steps)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
