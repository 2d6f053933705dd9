"""Processes of the run that are killed again and again: a writer, and ``acidsql compactor``."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acidsql.errors import WriteConflict
from tests.soak.books import require
from tests.soak.judge import Judge
from tests.soak.load import Unanswered
from tests.spark.processes import environment

KILLED_AT_ONCE = 0.06
"""How likely it is that a writer is killed some time after it was told what to write, and"""
KILLED_BEFORE_COMMIT = 0.06
"""that it kills itself when all is published and nothing committed."""


class OtherHands:
    """Statements of a process of its own, one at a time; when it was killed, the next one is started."""

    def __init__(self, folder: Path, warehouse: Path, settings: Mapping[str, str], judge: Judge) -> None:
        self._command = [sys.executable, "-m", "tests.soak.writer", str(warehouse), json.dumps(dict(settings))]
        self._folder = folder
        self._judge = judge
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def run(self, text: str, chance: random.Random) -> tuple[int, int, int]:
        drawn = chance.random()
        suicide = drawn < KILLED_BEFORE_COMMIT and not self._judge.stop.is_set()
        murder = not suicide and drawn < KILLED_BEFORE_COMMIT + KILLED_AT_ONCE and not self._judge.stop.is_set()
        with self._lock:
            process = self._process = self._process or self._start()
            answer = self._asked(process, json.dumps([text, suicide]), chance.uniform(0, 0.5) if murder else None)
            if not answer:
                process.wait()
                self._process = None
                self._judge.count("writers killed")
                require(process.returncode == -signal.SIGKILL, self._said())
                raise Unanswered
        kind, told = json.loads(answer)
        if kind == "conflict":
            raise WriteConflict(told)
        require(kind == "done", kind, told)
        updated, deleted, inserted = told
        return updated, deleted, inserted

    def _asked(self, process: subprocess.Popen[str], question: str, killed_after: float | None) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(killed_after or 0, process.kill)
        try:
            print(question, file=process.stdin, flush=True)
            if killed_after is not None:
                timer.start()
            return process.stdout.readline()
        except BrokenPipeError:  # it was killed just when it had answered the one before
            return ""
        finally:
            timer.cancel()

    def _start(self) -> subprocess.Popen[str]:
        with (self._folder / "writer.log").open("a") as log:
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert process.stdout is not None
        require(process.stdout.readline() == "ready\n", self._said())
        return process

    def _said(self) -> str:
        return (self._folder / "writer.log").read_text()[-3000:]

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@dataclass
class Daemon:
    """``acidsql compactor`` beside that of the session: killed now and then, and started again."""

    folder: Path
    warehouse: Path
    settings: Mapping[str, str]
    judge: Judge
    seed: str
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def work(self) -> None:
        chance = random.Random(self.seed)
        while True:
            self._process = self._start()
            if self.judge.stop.wait(chance.uniform(4, 20)):
                break
            require(self._process.poll() is None, "the other compactor has ended by itself:", self._said())
            self._process.kill()
            self._process.wait()
            self.judge.count("compactors killed")
        self._process.terminate()
        code = self._process.wait()
        require(code in (0, -signal.SIGTERM), "the other compactor ended with", code, self._said())
        errors = [line for line in self._said().splitlines() if " ERROR " in line]
        require(not errors, "the other compactor says:", *errors[:5])
        self.judge.count("compactions by the other compactor", self._said().count("ready for cleaning"))

    def _start(self) -> subprocess.Popen[bytes]:
        conf = [word for name, value in self.settings.items() for word in ("--conf", f"{name}={value}")]
        command = ["compactor", "--no-spark", "--warehouse", str(self.warehouse), *conf]
        with (self.folder / "compactor.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "acidsql", *command], cwd=self.folder, env=environment(), stderr=log
            )

    def _said(self) -> str:
        return (self.folder / "compactor.log").read_text()

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
