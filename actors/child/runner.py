"""The loop of commands that a child serves, for the reference and for candidates alike.

It reports what it sees (structure, aliasing, its own clock), and writes values into buffers that
the supervisor made. It never reports a pass: in here, candidate code can lie about anything.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from kopt.actors.child.adoption import adopt
from kopt.actors.child.channel import Channel, ChannelClosed
from kopt.actors.child.compiled import compiled
from kopt.actors.child.depends import inputs_that_matter
from kopt.actors.child.digest import memory_order, tensors_in
from kopt.actors.child.drawing import Drawing, kept_arguments
from kopt.actors.child.exchange import Exchange
from kopt.actors.child.influence import Call
from kopt.actors.child.latency import latency_us
from kopt.actors.child.memory import DTYPES, spec_of
from kopt.actors.child.module import (
    StageFailed,
    construct,
    default_dtype,
    import_source,
    init_arguments,
)
from kopt.actors.child.outputs import tensors_of
from kopt.actors.child.plain import Tree, decode
from kopt.actors.child.precision import in_float64
from kopt.actors.child.provenance import recorded
from kopt.actors.child.timed import KeptBlock, time_block
from kopt.actors.child.words import words_of
from kopt.actors.devices.base import Device, open_device
from kopt.problem import CANDIDATE_CLASS, REFERENCE_CLASS


class Runner:
    """Serves commands on one module."""

    def __init__(self, channel: Channel, *, sandbox: str, settings: dict[str, Any]) -> None:
        """Open the device and pin its flags.

        Args:
            channel: to the supervisor.
            sandbox: the level in force, reported with the first answer.
            settings: device, threads, ladder flags, module mode, dtype.
        """
        self._channel = channel
        self._sandbox = sandbox
        self._settings = settings
        self._device: Device | None = None
        self._drawing = Drawing()
        self._module: Any = None
        self._model: nn.Module | None = None
        self._run: Callable[..., object] | None = None
        self._exchange = Exchange()
        self._sets: dict[int, list[Any]] = {}
        self._kept = KeptBlock()

    def serve(self) -> None:
        """Answer commands until the supervisor is gone."""
        while True:
            try:
                command, fds = self._channel.receive()
            except ChannelClosed:
                return
            try:
                answer = self._answer(command, fds)
            except StageFailed as failure:
                answer = {"failed": failure.stage, "log": failure.why}
            except BaseException as error:  # noqa: BLE001 - the process boundary: all is reported
                answer = {"failed": str(command["op"]), "log": words_of(error)}
            try:
                self._channel.send(answer)
            except ChannelClosed:
                return

    def _answer(self, command: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        operation = command["op"]
        if operation in ("call", "time", "activity") and self._device is not None:
            self._pin()  # a candidate may have moved the flags of the ladder
        method = getattr(self, f"do_{operation}")
        fields = {name: value for name, value in command.items() if name != "op"}
        with torch.no_grad():
            passed = {"fds": fds} if operation in ("open", "map", "adopt") else {}
            answer = dict(method(**passed, **fields) or {})
        if self._device is not None:
            self._device.check()  # what was copied to the supervisor is there when it is told
        return answer

    # -- setting up ---------------------------------------------------------------------------

    def do_open(self, *, fds: list[int]) -> dict[str, Any]:
        """Make the device's context, and join the page by which blocks are released, if given."""
        self._device = open_device(self._settings["device"])
        self._pin()
        for fd in fds:
            self._device.join(fd)
            os.close(fd)
        return {"sandbox": self._sandbox, "pool_words": self._device.pool_words()}

    def do_adopt(
        self, *, fds: list[int], environment: dict[str, str], dtype: str | None, folder: str
    ) -> dict[str, Any]:
        """Become the child of a candidate (adoption.py)."""
        adopt(*fds, environment=environment, folder=folder)
        self._settings["dtype"] = dtype
        return {}

    def _pin(self) -> None:
        assert self._device is not None
        self._device.set_up(
            num_threads=self._settings["num_threads"],
            matmul_tf32=self._settings["matmul_tf32"],
            cudnn_tf32=self._settings["cudnn_tf32"],
        )

    def do_map(self, **tensors: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the command
        """Map tensors of the supervisor (exchange.py)."""
        self._exchange.map(self._device, **tensors)
        return {}

    def do_unmap(self, *, numbers: list[int]) -> dict[str, Any]:
        """Let buffers go."""
        self._exchange.unmap(numbers)
        return {}

    def do_import(self, *, source: str, name: str) -> dict[str, Any]:
        """Import a source; what it builds, it builds now."""
        self._module = import_source(source, name=name, folder=Path.cwd())
        return {}

    def do_construct_reference(self, *, seed: int) -> dict[str, Any]:
        """Make the reference's Model; return its constructor's arguments."""
        arguments = init_arguments(self._module)
        self._place_model(construct(self._module, REFERENCE_CLASS, arguments, **self._how(seed)))
        self._exchange.clear()
        return {"arguments": self._exchange.keep_tree(arguments), **self._exchange.kept()}

    def do_construct_candidate(self, *, arguments: Tree, seed: int) -> dict[str, Any]:
        """Make the candidate's ModelNew with the reference's arguments."""
        values = decode(arguments, lambda number: self._exchange.buffer(number).clone())
        assert isinstance(values, list), "the supervisor sends a list"
        self._place_model(construct(self._module, CANDIDATE_CLASS, values, **self._how(seed)))
        return {}

    def _how(self, seed: int) -> dict[str, Any]:
        return {"seed": seed, "mode": self._settings["module_mode"]}

    def _place_model(self, model: nn.Module) -> None:
        assert self._device is not None
        dtype = self._settings["dtype"]
        model = model.to(self._device.name)
        if dtype is not None:
            model = model.to(DTYPES[dtype])
        self._model = model
        self._run = model

    # -- state --------------------------------------------------------------------------------

    def do_describe_state(self) -> dict[str, Any]:
        """Return name, shape, dtype and kind of every tensor of the module's state."""
        assert self._model is not None
        parameters = {name for name, _ in self._model.named_parameters(remove_duplicate=False)}
        return {
            "state": [
                [name, *spec_of(tensor).to_json(), name in parameters]
                for name, tensor in self._model.state_dict().items()
            ]
        }

    def do_export_state(self, *, into: dict[str, int]) -> dict[str, Any]:
        """Copy the module's state into buffers."""
        assert self._model is not None
        state = self._model.state_dict()
        for name, number in into.items():
            self._exchange.buffer(number).copy_(state[name])
        return {}

    def do_load_state(self, *, sources: dict[str, int]) -> dict[str, Any]:
        """Load the module's state from buffers, by name; names not given keep their values."""
        assert self._model is not None
        state = {name: self._exchange.buffer(number) for name, number in sources.items()}
        outcome = self._model.load_state_dict(state, strict=False)
        if outcome.unexpected_keys:
            raise KeyError(f"load_state_dict did not take {outcome.unexpected_keys[:3]}")
        return {}

    # -- inputs -------------------------------------------------------------------------------

    def do_make_inputs(self, *, seed: int) -> dict[str, Any]:
        """Run the problem's get_inputs() under a seed, for the supervisor to fetch.

        Answers with one list of arguments more for each of get_input_cases(), where there is one.
        """
        self._exchange.clear()
        drawn = self._drawing.drawn(self._module, device=self._device, seed=seed)
        dtype = self._settings["dtype"]
        trees = [
            kept_arguments(values, name, self._exchange, dtype=dtype) for name, values in drawn
        ]
        return {"trees": trees, **self._exchange.kept()}

    def do_bind(self, *, number: int, tree: Tree) -> dict[str, Any]:
        """Make an input set of buffers, which belong to it from now on; a GPU gets copies."""
        device = self._device
        assert device is not None
        values = decode(tree, lambda each: device.place(self._exchange.take(each)))
        assert isinstance(values, list), "the supervisor sends a list"
        self._sets[number] = values
        return {}

    def do_unbind(self, *, numbers: list[int]) -> dict[str, Any]:
        """Let input sets go."""
        for number in numbers:
            self._sets.pop(number, None)
        return {}

    def do_read_back(self, *, number: int, tree: Tree) -> dict[str, Any]:
        """Copy an input set's tensors, as they are now, into other buffers."""
        self._exchange.read_back(self._sets[number], tree=tree)
        return {}

    # -- running ------------------------------------------------------------------------------

    def do_call(
        self, *, sets: list[int], seeds: list[int], into: list[list[int]]
    ) -> dict[str, Any]:
        """Run the module on input sets, each under its seed, and copy the outputs out.

        All outputs are alive at once.
        Without buffers (`into` empty) the outputs are kept, for the supervisor to fetch.
        """
        assert self._device is not None
        outputs = []
        for number, seed in zip(sets, seeds, strict=True):
            self._device.seed(seed)
            outputs.append(self._call(self._sets[number]))
        self._device.check()
        return self._hand_out(outputs, sets, into)

    def do_call_float64(self, *, number: int, seed: int, keeps: bool) -> dict[str, Any]:
        """Run a copy of the module in double precision, for the supervisor to fetch.

        An input set that is not to be kept is let go before.
        """
        device = self._device
        assert device is not None
        self._kept = KeptBlock()  # of timed calls, which nobody asks for any more
        exact = self._exact_call(self._sets[number], seed=seed)
        if not keeps:
            del self._sets[number]
        out = exact.run()
        device.check()
        del exact
        device.let_go()
        return self._exchange.hand_out([out], arguments=[[]], into=[])

    def do_time(self, **block: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the command
        """Time a block of calls (timed.py); its outputs are kept until the next one."""
        assert self._device is not None
        self._kept = KeptBlock()  # lets the last block's outputs go
        self._kept, answer = time_block(self._device, self._call, self._sets, **block)
        return answer

    def do_digests(self) -> dict[str, Any]:
        """Give the digests of the calls of the last block."""
        return {"digests": self._kept.digests}

    def do_hand_over(self, *, calls: list[int], into: list[list[int]]) -> dict[str, Any]:
        """Copy the outputs of some calls of the last block out.

        Raises:
            IndexError: somebody left calls out.
        """
        kept = self._kept
        outputs = [kept.outputs[call] for call in calls]
        handed = self._hand_out(outputs, [kept.numbers[call] for call in calls], into)
        orders = [[memory_order(each) for each in tensors_in(out)] for out in outputs]
        return {**handed, "orders": orders}

    def do_inputs_that_matter(self, *, number: int, seed: int, has_float64: bool) -> dict[str, Any]:
        """Say of the tensors of an input set which matter everywhere (depends.py)."""
        device = self._device
        assert device is not None
        arguments = self._sets[number]

        def run() -> object:
            device.seed(seed)
            return self._call(arguments)

        own = Call(run, tensors_of(arguments))
        exact = partial(self._exact_call, arguments, seed=seed) if has_float64 else None
        matter = inputs_that_matter(own, exact=exact, seed=seed)
        device.let_go()
        return {"matter": matter}

    def _exact_call(self, arguments: list[Any], *, seed: int) -> Call:
        """The call of a copy of the module in double precision, on a copy of its arguments."""
        assert self._model is not None
        device = self._device
        assert device is not None
        model = copy.deepcopy(self._model).double()
        doubled = [in_float64(value) for value in arguments]

        def run() -> object:
            with default_dtype(torch.float64):
                device.seed(seed)
                return model(*doubled)

        return Call(run, tensors_of(doubled))

    def do_observe(self, *, order: dict[str, Any]) -> dict[str, Any]:
        """Look at one forward call as an order says; the report is kept to be fetched."""
        from kopt.actors.evidence.in_child import observe  # profiling alone needs it

        assert self._device is not None
        self._exchange.clear()
        self._exchange.keep(observe(self._device, order))
        return self._exchange.kept()

    def do_activity(self, *, number: int, seed: int) -> dict[str, Any]:
        """Say what one call of the module runs on the device (provenance.py)."""
        assert self._device is not None
        return recorded(self._device, lambda: self._call(self._sets[number]), seed=seed)

    def do_memory(self, *, num_bytes: int) -> dict[str, Any]:
        """Say how fast the device moves so many bytes; null where that is not known."""
        assert self._device is not None
        memory = self._device.memory(num_bytes=num_bytes)
        return {"memory": None if memory is None else asdict(memory)}

    def do_latency(self) -> dict[str, Any]:
        """Say how long a trivial kernel takes (latency.py)."""
        assert self._device is not None
        return {"latency_us": latency_us(self._device)}

    def do_compile(
        self, *, mode: str | None, number: int, seed: int, afresh: bool
    ) -> dict[str, Any]:
        """Put torch.compile round the module and run it once (compiled.py)."""
        assert self._model is not None
        assert self._device is not None
        self._run = compiled(self._model, mode=mode, afresh=afresh)
        torch.manual_seed(seed)
        self._call(self._sets[number])
        self._device.check()
        self._device.let_go()
        return {}

    def do_let_go(self) -> dict[str, Any]:
        """Give back what torch keeps for later, where it is much."""
        assert self._device is not None
        self._device.let_go()
        return {}

    def _call(self, arguments: Sequence[Any]) -> object:
        assert self._run is not None
        return self._run(*arguments)

    # -- handing out --------------------------------------------------------------------------

    def do_fetch(self, *, into: list[int]) -> dict[str, Any]:
        """Copy what was kept into buffers, in order, and let it go, from the device too."""
        self._exchange.fetch(into)
        if self._device is not None:
            self._device.let_go()
        return {}

    def _hand_out(
        self, outputs: list[object], sets: list[int], into: list[list[int]]
    ) -> dict[str, Any]:
        arguments = [self._sets[number] for number in sets]
        return self._exchange.hand_out(outputs, arguments=arguments, into=into)
