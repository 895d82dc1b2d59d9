"""Where profiled processes are started: children of a zygote, and jobs for ncu, alike confined."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from kopt.actors.build.gpu_facts import gpu_of_node
from kopt.actors.config import EvaluateConfig
from kopt.actors.devices.base import DeviceName
from kopt.actors.evidence.ncu import NO_STOCK_FILES, NcuJob, ncu_environment
from kopt.actors.evidence.order import Look, Order, order_for
from kopt.actors.supervisor.child import Child, ChildFailed, specs_of
from kopt.actors.supervisor.environment import child_environment
from kopt.actors.supervisor.scratch import ScratchRoot
from kopt.actors.supervisor.settings import open_bench
from kopt.actors.supervisor.zygote import Zygote
from kopt.ladder import LADDERS
from kopt.problem import Problem

MAX_REPORT_BYTES = 256 << 20
FETCH_S = 30.0


class Workbench:
    """One device's processes for profiling."""

    def __init__(
        self,
        config: EvaluateConfig,
        *,
        device: DeviceName,
        cache_dir: Path,
        is_lasting: bool = True,
        zygote: Zygote | None = None,
    ) -> None:
        """Start the zygote; no device is touched.

        Args:
            config: how candidates are judged: ladder, module mode, deadlines, memory.
            device: kind of device.
            cache_dir: kopt's cache on this node.
            is_lasting: many problems will be asked about: what counting a reference needs is loaded
                once, for seconds, and not by each child that counts.
            zygote: that was started already (`early`); None starts one.
        """
        self.config = config
        self.device = device
        self.cache_dir = cache_dir
        self._scratch = ScratchRoot()
        facts = gpu_of_node() if device == "cuda" else None
        self.arch = "" if facts is None else facts.arch
        """Of the GPU, `sm_90`; empty where it is not known, and on a CPU."""
        self._bench = open_bench(
            config,
            device=device,
            cache_dir=cache_dir,
            observes=is_lasting,
            arch=self.arch,
            zygote=zygote,
        )
        self.num_threads = self._bench.num_threads

    def order(self, problem: Problem, candidate: str | None, *, look: Look = "trace") -> Order:
        """Return the order for a candidate's source, or for the reference (None)."""
        ladder = LADDERS[self.config.ladder]
        return order_for(
            problem,
            candidate,
            look=look,
            module_mode=self.config.module_mode,
            matmul_tf32=ladder.matmul_tf32,
            cudnn_tf32=ladder.cudnn_tf32,
            num_threads=self.num_threads,
        )

    def observe(
        self,
        problem: Problem,
        order: Order,
        *,
        timeout_s: float,
        build_dir: Path | None = None,
        keeps_builds: bool = False,
    ) -> dict[str, Any]:
        """Have a new child do what an order says; return its report, which is untrusted.

        Args:
            problem: for its dtype.
            order: what to do.
            timeout_s: deadline of it all.
            build_dir: the candidate's folder of builds; None for the reference.
            keeps_builds: what the child adds to that folder stays.

        Raises:
            ChildFailed: it raised, died, took too long, or reported no JSON object.
            WorkerLost: the zygote is gone.
        """
        child = self.child(problem, build_dir=build_dir, keeps_builds=keeps_builds)
        try:
            return self.ask(child, order, timeout_s=timeout_s)
        finally:
            child.end()

    def child(
        self,
        problem: Problem,
        *,
        build_dir: Path | None = None,
        keeps_builds: bool = False,
        on_host: bool = False,
    ) -> Child:
        """Fork a child and open its device; whoever has it ends it.

        Args:
            problem: for its dtype.
            build_dir: the candidate's folder of builds; None for the reference.
            keeps_builds: what the child adds to that folder stays.
            on_host: it needs no device, whatever this one's are.

        Raises:
            ChildFailed: the device cannot be opened.
            WorkerLost: the zygote is gone.
        """
        bench = replace(self._bench, device="cpu", exchange="cpu") if on_host else self._bench
        return bench.child(problem, build_dir=build_dir, keeps_builds=keeps_builds)

    def ask(self, child: Child, order: Order, *, timeout_s: float) -> dict[str, Any]:
        """Have a child do what an order says; return its report, which is untrusted.

        Raises:
            ChildFailed: it raised, died, took too long, or reported no JSON object.
        """
        answer = child.ask("observe", timeout_s=timeout_s, order=order.to_json())
        specs = specs_of(answer)
        if len(specs) != 1 or specs[0].num_bytes > MAX_REPORT_BYTES:
            raise ChildFailed("died", "observe", "spoke out of turn: no report")
        try:
            (report,) = child.fetch(answer, timeout_s=FETCH_S)
            found = json.loads(bytes(report.tensor.numpy().tobytes()))
        except (ValueError, MemoryError, RecursionError) as error:
            raise ChildFailed("died", "observe", f"its report is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise ChildFailed("died", "observe", "its report is no JSON object")
        return found

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Lend a new folder, removed afterwards."""
        with tempfile.TemporaryDirectory(dir=self._scratch.path, ignore_cleanup_errors=True) as at:
            Path(at).chmod(0o755)
            yield Path(at)

    def ncu_environment(self, folder: Path) -> dict[str, str]:
        """Return the environment of a run of ncu, before it has jobs."""
        return ncu_environment(folder, num_threads=self.num_threads, cache_dir=self.cache_dir)

    def ncu_job(self, order: Order, *, folder: Path, build_dir: Path, landlock: bool) -> NcuJob:
        """Return the job for ncu, in a folder of its own below another."""
        own = Path(tempfile.mkdtemp(dir=folder))
        environment = child_environment(
            scratch=own,
            num_threads=self.num_threads,
            cache_dir=self.cache_dir,
            build_dir=build_dir,
        )
        environment[NO_STOCK_FILES] = "1"
        return NcuJob(
            order=order.to_json(),
            environment=environment,
            folder=str(own),
            writable=(str(own), str(build_dir)),
            landlock=landlock,
        )

    def close(self) -> None:
        """End the zygote and remove its folders."""
        self._bench.zygote.close()
        self._scratch.close()
