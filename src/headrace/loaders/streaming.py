"""The loader that a training loop holds.

1. The reference is resolved once; the version stays pinned whatever is published meanwhile.
2. A loop runs to the end of the current `epochs`; the next loop goes on with the epochs after it, in their own order.
3. The position moves when the trainer takes a batch, never when one is read or made ready.
4. A loader that takes a state does what the one that gave it would have done next: a state from inside a loop goes on
   in that loop (where its last batch was taken, the loop is empty), a state from after it begins the next.
"""

from __future__ import annotations

import importlib.util
import operator
import weakref
from collections.abc import Generator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from headrace.errors import MissingDependency, SpecError
from headrace.loaders.prefetch import Prefetch
from headrace.loaders.source import Source
from headrace.loaders.state import StreamState
from headrace.loaders.stream import Stream, Taken

if TYPE_CHECKING:
    from headrace.storage.lake import Lake

Output = Literal["auto", "numpy", "arrow", "torch"]
_OUTPUTS = ("auto", "numpy", "arrow", "torch")


class StreamingLoader:
    """Shuffled batches of a dataset version, the same on every machine, resumable at every sample.

    `for batch in loader` gives dicts from column to array (see the table in `columns`), or `pyarrow.RecordBatch` for
    output "arrow".  "auto" is torch where it is installed and numpy elsewhere.  `epochs=None` never ends.  No batch
    crosses the border of two epochs: the last one is short, or left out with `drop_last`.  `block_rows` rows are read
    together; fewer mix better and read slower, and rows of a megabyte want few.  One loop at a time: a new one ends
    the one before.

    Raises: SpecError for a wrong argument, DatasetNotFound, MissingDependency for output "torch" without torch.  While
    iterating: StorageUnavailable, and DataError for nulls in a column of whole numbers.
    """

    def __init__(
        self,
        ref: str,
        *,
        lake: str | Lake | None = None,
        batch_size: int,
        seed: int = 0,
        epochs: int | None = 1,
        columns: list[str] | None = None,
        shuffle: bool = True,
        num_threads: int = 2,
        prefetch_batches: int = 4,
        output: Output = "auto",
        drop_last: bool = False,
        block_rows: int = 256,
    ) -> None:
        """Open the version and count its rows; nothing is read before the first loop."""
        self._batch_size = _whole("batch_size", batch_size, 1)
        self._epochs = None if epochs is None else _whole("epochs", epochs, 1)
        self._prefetch_batches = _whole("prefetch_batches", prefetch_batches, 1)
        seed, block_rows = _whole("seed", seed, None), _whole("block_rows", block_rows, 1)
        num_threads = _whole("num_threads", num_threads, 0)
        made = _output(output)
        # Lance takes most of a second to import: a program that only mentions the loader does not pay for it.
        from headrace.storage.lake import Lake
        from headrace.storage.open import open_version
        from headrace.storage.reference import Reference

        parsed = Reference.parse(ref)
        dataset = open_version(lake if isinstance(lake, Lake) else Lake.resolve(lake), parsed)
        self._version = int(dataset.version)
        self._name = parsed.name
        self._source = Source(dataset, self.reference, columns)
        if drop_last and 0 < self.num_rows < self._batch_size:
            rule = f"{self.reference} has {self.num_rows} rows, so every batch would be short and left out"
            raise SpecError("batch_size", str(self._batch_size), rule, "take a smaller one or drop_last=False")
        self._stream = Stream(
            self._source, seed, bool(shuffle), block_rows, self._batch_size, bool(drop_last), made, num_threads
        )
        self._position = 0
        self._is_finished = True  # no loop is under way
        self._is_resumed = False
        self._active: weakref.ref[_Loop] | None = None

    @property
    def version(self) -> int:
        """The version that every batch comes from."""
        return self._version

    @property
    def reference(self) -> str:
        """Dataset and version, as it can be opened again: `docs/python@3`."""
        return f"{self._name}@{self._version}"

    @property
    def num_rows(self) -> int:
        """Rows of one epoch; deleted rows don't count."""
        return self._source.num_rows

    def __len__(self) -> int:
        """Batches of one whole epoch."""
        full, rest = divmod(self.num_rows, self._batch_size)
        return full + (rest > 0 and not self._stream.drop_last)

    def __iter__(self) -> _Loop:
        """Go on where the stream stands."""
        self.close()
        end = self._loop_end()
        self._is_resumed = False
        if end != self._position:
            self._is_finished = self._at_pass_end()
        loop = _Loop(self, end)
        self._active = weakref.ref(loop)
        return loop

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands, for JSON; counts what the trainer has taken and nothing beyond."""
        return self._state(self._position, self._is_finished).to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from this state; SpecError that lists the differences where it belongs to another stream."""
        told = StreamState.from_dict(state)
        told.check_same_stream(self._state(0, True))
        self.close()
        self._position, self._is_finished, self._is_resumed = told.position, told.finished, True

    def close(self) -> None:
        """End the loop that is under way and stop its threads; the position stays."""
        loop = self._active() if self._active is not None else None
        self._active = None
        if loop is not None:
            loop.close()

    def __enter__(self) -> StreamingLoader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StreamingLoader({self.reference!r}, batch_size={self._batch_size}, position={self._position})"

    def _at_pass_end(self) -> bool:
        return self._epochs is not None and self._position % max(1, self.num_rows * self._epochs) == 0

    def _loop_end(self) -> int | None:
        """Position at which the loop that begins now ends."""
        if self.num_rows == 0:
            return self._position
        if self._epochs is None:
            return None
        if self._is_resumed and self._position and not self._is_finished and self._at_pass_end():
            return self._position  # the loop of the state has given its last batch: only its end is left
        pass_rows = self.num_rows * self._epochs
        return (self._position // pass_rows + 1) * pass_rows

    def _state(self, position: int, is_finished: bool) -> StreamState:
        stream = self._stream
        return StreamState(
            dataset=self._name,
            version=self._version,
            num_rows=self.num_rows,
            seed=stream.seed,
            shuffle=stream.shuffle,
            block_rows=stream.block_rows,
            position=position,
            finished=is_finished,
            batch_size=self._batch_size,
        )

    def _took(self, position: int, is_finished: bool) -> None:
        self._position, self._is_finished = position, is_finished


class _Loop:
    """One `for`: holds the loader, which holds it only weakly, so that a `break` ends the threads."""

    def __init__(self, loader: StreamingLoader, end: int | None) -> None:
        self._loader, self._end = loader, end
        self._is_open = True
        batches = loader._stream.batches(loader._position, end)
        self._batches: Generator[Taken, None, None] | Prefetch[Taken] = batches
        if loader._stream.num_threads and end != loader._position:
            self._batches = Prefetch(batches, loader._prefetch_batches)

    def __iter__(self) -> _Loop:
        return self

    def __next__(self) -> Any:
        if not self._is_open:
            raise StopIteration
        try:
            taken = next(self._batches)
            self._loader._took(taken.position, False)
            return taken.batch
        except StopIteration:
            self.close()
            self._loader._took(self._loader._position if self._end is None else self._end, True)
            raise
        except BaseException:  # an error of a reading thread, or Ctrl-C while waiting
            self.close()
            raise

    def close(self) -> None:
        """Stop the threads; the loop gives nothing more."""
        self._is_open = False
        self._batches.close()


def _whole(name: str, value: Any, least: int | None) -> int:
    rule = "must be a whole number" + ("" if least is None else f" >= {least}")
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least):
        raise SpecError(name, repr(value), rule, f"write {name}={max(1, least or 1)}, for example")
    return number


def _output(output: str) -> str:
    if output not in _OUTPUTS:
        raise SpecError("output", repr(output), f"must be one of {', '.join(_OUTPUTS)}", "leave it out for auto")
    has_torch = output in ("auto", "torch") and importlib.util.find_spec("torch") is not None
    if output == "torch" and not has_torch:
        raise MissingDependency("output", "'torch'", "torch is not installed", "pip install 'headrace[torch]'")
    if output == "auto":
        return "torch" if has_torch else "numpy"
    return output
