import { assert, it } from "@effect/vitest"
import { Effect, Exit, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ScheduleJournal, Storage } from "shiftboss"
import { ScriptedWorkflows } from "shiftboss/testing"
import { makeDisk, minute, start } from "../core/schedule/kit.ts"
import { Account } from "../core/schedule/law.ts"
import { diskWith, failure, folder, storageIn } from "./support/folders.ts"

it.effect("a disk that is full stops nothing for good, and every slot is accounted for when there is room", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(20_000 * 1440 * minute)
    const path = yield* folder
    let isFull = false
    const disk = diskWith((file) => ({
      write: (buffer, at, position) => (isFull ? Promise.reject(failure("ENOSPC")) : file.write(buffer, at, position))
    }))
    const host = ScriptedWorkflows.make()
    host.endsAtOnce = "succeeded"
    const ids = ["a", "b", "c"]
    const schedules = ids.map((workflowId) => ({ workflowId, everySeconds: 60 }))
    const process = yield* start({ ...(yield* makeDisk), storage: storageIn(path, disk) }, host, schedules)
    const minutes = [false, false, true, true, false, true, false, false]
    for (const full of minutes) {
      isFull = full
      yield* TestClock.adjust(minute)
      assert.strictEqual(Exit.isFailure(yield* Effect.exit(process.journal.tick)), full)
    }
    const summaries = yield* process.journal.list
    yield* process.stop
    const entries = yield* Stream.runCollect(
      Storage.readTyped(storageIn(path), "schedules", { entry: ScheduleJournal.ScheduleEvent, version: 1 })
    )
    for (const id of ids) {
      const account = new Account(
        entries.filter(({ workflowId }) => workflowId === id),
        0
      )
      assert.deepStrictEqual(
        summaries.find(({ workflowId }) => workflowId === id),
        account.summary(id)
      )
      assert.strictEqual(account.slots.size, minutes.length)
      assert.strictEqual(account.count("ran") + account.count("skipped: missed"), minutes.length)
    }
    const started = host.submitted.map(({ runId }) => runId)
    assert.strictEqual(new Set(started).size, started.length)
  })
)
