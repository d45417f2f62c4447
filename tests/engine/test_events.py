"""The event log: one writer, any number of readers at their own pace."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint

from mira.actors.runtime.events import EventLog

pytestmark = pytest.mark.anyio


class Word(msgspec.Struct, frozen=True):
    seq: int
    text: str
    attempt: int = 1


def joined(first: Word, second: Word) -> Word | None:
    if second.text.startswith("!"):
        return None
    return Word(second.seq, first.text + second.text)


def log_of(*texts: str, limit: int = 1000) -> EventLog[Word]:
    log = EventLog(joined, limit=limit)
    for seq, text in enumerate(texts, start=1):
        log.append(Word(seq, text))
    return log


async def test_a_reader_gets_everything_after_the_number_it_names() -> None:
    log = log_of("a", "b", "!c", "d")
    assert [e.text for e in await log.reader().batch()] == ["ab", "!cd"]
    assert [e.text for e in await log.reader(after=3).batch()] == ["d"]
    assert (await log.reader(after=2).batch())[0].seq == 4


async def test_a_reader_waits_for_news_and_ends_when_the_log_is_closed() -> None:
    log = log_of("a")
    got = []

    async def read() -> None:
        reader = log.reader()
        while batch := await reader.batch():
            got.append([e.text for e in batch])

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        for _ in range(3):
            await checkpoint()
        log.append(Word(2, "b"))
        log.append(Word(3, "c"))
        for _ in range(3):
            await checkpoint()
        log.append(Word(4, "d"))
        log.close()
    assert got == [["a"], ["bc"], ["d"]]
    assert await log.reader(after=4).batch() == ()
    assert [e.text for e in await log.reader(after=3).batch()] == ["d"]


async def test_slow_readers_get_all_the_text_in_fewer_batches_and_never_slow_the_writer() -> None:
    log = log_of()
    texts = [f"{n} " for n in range(500)]
    got: dict[int, list[str]] = {}

    async def read(pace: int) -> None:
        got[pace] = []
        async for batch in log.reader():
            got[pace].append("".join(e.text for e in batch))
            for _ in range(pace):
                await checkpoint()

    async with anyio.create_task_group() as group:
        for pace in (0, 7, 50):
            group.start_soon(read, pace)
        for seq, text in enumerate(texts, start=1):
            log.append(Word(seq, text))
            await checkpoint()
        log.close()
    assert all("".join(batches) == "".join(texts) for batches in got.values())
    assert len(got[50]) < len(got[7]) < len(got[0])


async def test_a_reader_that_is_too_slow_is_told_how_much_it_has_missed() -> None:
    log = log_of(limit=100)
    reader = log.reader()
    for seq in range(1, 351):
        log.append(Word(seq, "!x"))
    batch = await reader.batch()
    assert reader.missed + len(batch) == 350
    assert 75 <= len(batch) <= 100
    assert [e.seq for e in batch] == list(range(reader.missed + 1, 351))
    log.append(Word(351, "!y"))
    assert [e.seq for e in await reader.batch()] == [351]
    assert reader.missed == 0


async def test_numbers_only_rise_and_nothing_follows_the_end() -> None:
    log = log_of("a", "b")
    with pytest.raises(ValueError):
        log.append(Word(2, "again"))
    log.close()
    log.close()
    with pytest.raises(ValueError):
        log.append(Word(3, "late"))
    assert (log.closed, log.last_seq) == (True, 2)


async def test_two_hundred_readers_are_woken_once_for_many_events() -> None:
    log = log_of()
    batches = 0

    async def read() -> None:
        nonlocal batches
        async for _ in log.reader():
            batches += 1

    async with anyio.create_task_group() as group:
        for _ in range(200):
            group.start_soon(read)
        for _ in range(3):
            await checkpoint()
        for seq in range(1, 101):
            log.append(Word(seq, "x"))
        log.close()
    assert batches == 200
