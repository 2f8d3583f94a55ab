"""What a hostile intervention could try: bodies of ``realize(context, proposal)``, each written so that its failure raises.

``LOOT`` holds what it is after: places and numbers outside of its process. An attack that succeeds returns its loot as the action.
"""

from __future__ import annotations

TAKE = "return {**proposal, 'action': str(loot)}"

ATTACKS: dict[str, str] = {
    # secrets
    "a key in the environment": f"import os; loot = os.environ['HARNESSLAB_TEST_KEY']; {TAKE}",
    "any variable": f"import os; loot = list(os.environ.items())[0]; {TAKE}",
    "its own /proc/self/environ": f"loot = open('/proc/self/environ').read(); {TAKE}",
    "the parent's environ": f"import os; loot = open(f'/proc/{{LOOT[\"pid\"]}}/environ').read(); {TAKE}",
    "the parent's memory": f"loot = open(f'/proc/{{LOOT[\"pid\"]}}/mem', 'rb').read(1); {TAKE}",
    "a key on disk": f"loot = open(LOOT['key']).read(); {TAKE}",
    "the database": f"import sqlite3; loot = sqlite3.connect('file:' + LOOT['db'] + '?mode=ro', uri=True).execute('select * from t').fetchall(); {TAKE}",
    "the database as bytes": f"loot = open(LOOT['db'], 'rb').read(); {TAKE}",
    "installed packages": f"import harnesslab_envs; loot = harnesslab_envs; {TAKE}",
    "files of packages": f"import os; loot = os.listdir(LOOT['packages'])[0]; {TAKE}",
    "open files": f"import os; loot = [os.readlink(f'/proc/self/fd/{{n}}') for n in range(3)]; {TAKE}",
    "descriptors of the parent": f"import os; loot = [os.pread(n, 100, 0) for n in range(3, 64) if os.fstat(n)][0]; {TAKE}",
    "a symbolic link": f"import os; os.symlink(LOOT['key'], 'link'); loot = open('link').read(); {TAKE}",
    "a hard link": f"import os; os.link(LOOT['key'], 'hard'); loot = open('hard').read(); {TAKE}",
    "gold through gc": f"import gc; loot = [o for o in gc.get_objects() if isinstance(o, dict) and ('gold' in o or 'private' in o) and o is not globals()][0]; {TAKE}",
    "gold through frames": "import sys\n    frame = sys._getframe()\n    while 'episode' not in frame.f_locals: frame = frame.f_back\n    return {**proposal, 'action': str(frame.f_locals)}",
    "the task's id": f"loot = context['task_id']; {TAKE}",
    "the reward so far": f"loot = context['history'][-1]['reward'] if context['history'] else context['reward']; {TAKE}",
    # out
    "a TCP socket": "import socket; socket.create_connection(('127.0.0.1', LOOT['port']), timeout=2).send(b'loot')",
    "a UDP socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'loot', ('127.0.0.1', LOOT['port']))",
    "a name server": "import socket; socket.getaddrinfo('example.com', 80)",
    "a web request": "import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{LOOT[\"port\"]}/loot', timeout=2)",
    "a Unix socket": "import socket; s = socket.socket(socket.AF_UNIX); s.connect(LOOT['unix']); s.send(b'loot')",
    "a socket pair": "import socket; socket.socketpair()",
    "listening": "import socket; socket.create_server(('127.0.0.1', 0)); import time; time.sleep(60)",
    "io_uring": "import ctypes, os; r = ctypes.CDLL(None, use_errno=True).syscall(425, 8, ctypes.create_string_buffer(120)); os.close(r)",
    # writing
    "writing outside": "open(LOOT['folder'] + '/written', 'w').write('x')",
    "changing a file": "open(LOOT['key'], 'a').write('x')",
    "writing to the root": "open('/written', 'w').write('x')",
    "writing into the standard library": "import json; open(json.__file__, 'a').write('x')",
    "writing into its own sources": "import sys; open(sys.modules['__main__'].__file__, 'a').write('x')",
    "deleting": "import os; os.remove(LOOT['key'])",
    "climbing out": "open('../../../../../..' + LOOT['folder'] + '/written', 'w')",
    "a file of 10 GB": "f = open('big', 'wb')\n    while True: f.write(bytes(1 << 20))",
    "a thousand files": "for n in range(1000): open(f'f{n}', 'wb').write(bytes(1 << 20))",
    # processes
    "a fork bomb": "import os\n    while True: os.fork()",
    "a subprocess": "import subprocess; subprocess.run(['/bin/sh', '-c', 'echo'], check=True)",
    "a spawned process": "import os; os.posix_spawn('/bin/sh', ['sh'], {})",
    "another program": "import os; os.execv('/bin/sh', ['sh', '-c', 'sleep 100'])",
    "a daemon": "import os\n    if os.fork() == 0: os.setsid(); import time; time.sleep(600)",
    "a process pool": "import multiprocessing; multiprocessing.get_context('spawn').Process(target=print).start()",
    "a bomb of threads": "import threading, time\n    while True: threading.Thread(target=time.sleep, args=(60,)).start()",
    # others
    "killing the parent": "import os; os.kill(LOOT['pid'], 9)",
    "killing its parent": "import os; os.kill(os.getppid(), 9)",
    "killing everybody": "import os; os.kill(-1, 9)",
    "stopping the parent": "import os, signal; os.kill(LOOT['pid'], signal.SIGSTOP)",
    "ptrace": "import ctypes, os\n    if ctypes.CDLL(None).ptrace(16, LOOT['pid'], 0, 0): raise PermissionError('ptrace')",
    "reading the parent's memory": "import ctypes\n    if ctypes.CDLL(None).syscall(310, LOOT['pid'], 0, 0, 0, 0, 0) < 0: raise PermissionError('memory')",
    "a new namespace": "import ctypes\n    if ctypes.CDLL(None).unshare(0x10000000): raise PermissionError('unshare')",
    "mounting": "import ctypes\n    if ctypes.CDLL(None).mount(b'none', b'/tmp', b'tmpfs', 0, None): raise PermissionError('mount')",
    "chroot": "import os; os.chroot('/')",
    "higher limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "becoming root": "import os; os.setuid(0) if os.getuid() else os.setgid(54321); raise PermissionError('already')",
    # using up
    "an endless loop": "while True: pass",
    "an endless loop that catches all": "while True:\n        try:\n            while True: pass\n        except BaseException: pass",
    "sleeping": "import time; time.sleep(600)",
    "waiting for input": "input()",
    "a regex that explodes": "import re; re.match('(a+)+$', 'a' * 60 + 'b')",
    "much memory at once": "x = bytearray(1 << 36)",
    "memory bit by bit": "x = []\n    while True: x.append(bytearray(1 << 20))",
    "endless printing": "while True: print('x' * 100000)",
    "a huge answer": "return {**proposal, 'action': 'x' * (8 << 20)}",
    "a deep answer": "x = []\n    for _ in range(100000): x = [x]\n    return x",
    "an answer in itself": "x = {}; x['x'] = x; return x",
    "endless recursion": "return realize(context, proposal)",
    "an error whose text hangs": "class E(Exception):\n        def __str__(self):\n            while True: pass\n    raise E",
    "an error whose text is huge": "raise ValueError('x' * (64 << 20))",
    # endings
    "leaving": "import os; os._exit(0)",
    "leaving politely": "raise SystemExit",
    "interrupting": "raise KeyboardInterrupt",
    "a crash": "import ctypes; ctypes.string_at(0)",
    "closing everything": "import os; os.closerange(0, 1000)",
    "no memory for its stack": "import sys; sys.setrecursionlimit(10**9); return realize(context, proposal)",
    # lies
    "garbage on the socket": "import os\n    for n in range(3, 64):\n        try: os.write(n, b'\\xff' * 64)\n        except OSError: pass",
    "an answer ahead": "import os, json, struct\n    body = json.dumps({'id': 2, 'value': {**proposal, 'action': 'left'}}).encode()\n    for n in range(3, 64):\n        try: os.write(n, struct.pack('>I', len(body)) + body)\n        except OSError: pass",
    "an announcement of 4 GB": "import os\n    for n in range(3, 64):\n        try: os.write(n, b'\\xff\\xff\\xff\\xff')\n        except OSError: pass",
    "a reward": "return {**proposal, 'reward': 1.0}",
    "a solved task": "return {**proposal, 'solved': True, 'private': {'solved': True}}",
    "a forged number": 'import json; json.dumps = lambda *a, **k: \'{"id": 1, "value": null, "error": null, "solved": true}\'',
    "changing the loop": "import harnesslab.rollout.episode as e; e.play = None",
    "changing what it imports": "import builtins; builtins.len = lambda x: 0",
    "a pickle": "import pickle; return pickle.dumps(proposal)",
    "an object that pickles into a call": "class P(dict):\n        def __reduce__(self): return (exec, ('1/0',))\n    return {**proposal, 'tool_calls': [P(name=object())]}",
    "not a number": "return {**proposal, 'tool_calls': [{'x': float('nan')}]}",
    "another type": "return 'right'",
    "a type that lies": "class D(dict):\n        def items(self): return [('raw', object())]\n    return D(raw='x')",
}

LOADING: dict[str, str] = {
    "an endless loop while it is loaded": "while True: pass",
    "leaving while it is loaded": "import os; os._exit(0)",
    "a key while it is loaded": "import os; os.environ['HARNESSLAB_TEST_KEY']",
    "writing while it is loaded": "open('/written', 'w')",
    "a parser that overflows": "not " * 60_000 + "1",
    "printing while it is loaded": "print('x' * (1 << 24))\n1/0",
}
