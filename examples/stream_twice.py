"""Stream a dataset for two epochs; then do it again, stopped in the middle, and check that nothing differs.

python examples/stream_twice.py [REFERENCE]        (default docs/python@prod, in HEADRACE_LAKE or ./lake)
"""

from __future__ import annotations

import json
import sys
import time

from headrace.errors import HeadraceError
from headrace.loaders import StreamingLoader

EPOCHS = 2


def open_loader(reference: str, batch_size: int, num_threads: int) -> StreamingLoader:
    """The same stream each time: batch size and threads are no part of its order."""
    return StreamingLoader(
        reference,
        batch_size=batch_size,
        num_threads=num_threads,
        seed=17,
        epochs=EPOCHS,
        columns=["id", "text"],
        output="numpy",
    )


def main(reference: str) -> int:
    """Exit code 0 where the resumed stream is the uninterrupted one."""
    loader = open_loader(reference, batch_size=64, num_threads=2)
    began = time.perf_counter()
    uninterrupted: list[str] = []
    num_letters = 0
    for batch in loader:
        uninterrupted.extend(batch["id"])
        num_letters += sum(map(len, batch["text"]))
    seconds = time.perf_counter() - began
    told = f"{len(uninterrupted):,} rows, {num_letters / 1e6:,.1f} M characters"
    print(f"{loader.reference}: {EPOCHS} epochs of {loader.num_rows:,} rows")
    print(f"uninterrupted: {told} in {seconds:.2f} s, {len(uninterrupted) / seconds:,.0f} rows/s")

    # The pinned version, not the channel: what is published meanwhile must not change what a training run sees.
    # Batches of at most a 16th of an epoch, so that there is a middle to stop in however small the dataset is.
    first = open_loader(loader.reference, batch_size=min(64, max(1, loader.num_rows // 16)), num_threads=2)
    resumed: list[str] = []
    for batch in first:
        resumed.extend(batch["id"])
        if len(resumed) >= loader.num_rows / 2:
            break
    state = json.dumps(first.state_dict())  # goes into the checkpoint, next to the weights
    first.close()
    print(f"stopped in the middle of epoch 1 after {len(resumed):,} of {loader.num_rows:,} rows, state: {state}")

    second = open_loader(loader.reference, batch_size=48, num_threads=1)
    second.load_state_dict(json.loads(state))
    num_before = len(resumed)
    for batch in second:
        resumed.extend(batch["id"])
    print(f"resumed with batches of 48 and one thread: {len(resumed) - num_before:,} rows more")

    checks = {
        "resumed stream equals the uninterrupted one": resumed == uninterrupted,
        "each epoch has every row once": all(
            len(set(uninterrupted[i * loader.num_rows : (i + 1) * loader.num_rows])) == loader.num_rows
            for i in range(EPOCHS)
        ),
    }
    for claim, holds in checks.items():
        print(f"{'ok' if holds else 'WRONG'}: {claim}")
    return 0 if all(checks.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "docs/python@prod"))
    except HeadraceError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
