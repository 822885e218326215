import { assert, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber } from "effect"
import type { ScheduleJournal } from "shiftboss"
import { ScriptedWorkflows } from "shiftboss/testing"

const firing = (runId: string): ScheduleJournal.Firing => ({
  workflowId: "a",
  slot: 1,
  runId,
  input: null,
  dueAt: 0,
  late: Duration.zero
})

it.effect("lets runs go on until the test ends them", () =>
  Effect.gen(function* () {
    const host = ScriptedWorkflows.make()
    const { submit, outcome } = host.workflows
    assert.strictEqual(yield* outcome("r1"), "unknown")
    yield* submit(firing("r1"))
    yield* submit(firing("r2"))
    assert.deepStrictEqual(host.running, ["r1", "r2"])
    host.end("failed", ["r1"])
    host.end("succeeded")
    assert.deepStrictEqual([yield* outcome("r1"), yield* outcome("r2")], ["failed", "succeeded"])
    assert.strictEqual(host.asked, 5)
  })
)

it.effect("tells a run that was submitted twice, and does not begin it anew", () =>
  Effect.gen(function* () {
    const host = ScriptedWorkflows.make()
    host.endsAtOnce = "cancelled"
    yield* host.workflows.submit(firing("r1"))
    host.endsAtOnce = undefined
    yield* host.workflows.submit(firing("r1"))
    assert.strictEqual(host.submitted.length, 2)
    assert.strictEqual(yield* host.workflows.outcome("r1"), "cancelled")
  })
)

it.effect("refuses, keeps silent, loses its answer or hangs, as the test says", () =>
  Effect.gen(function* () {
    const host = ScriptedWorkflows.make()
    const { submit } = host.workflows
    host.manner = "refusing"
    assert.deepStrictEqual(yield* submit(firing("r1")), { _tag: "Refused", reason: "as scripted" })
    host.manner = "silent"
    assert.isTrue(Exit.isFailure(yield* Effect.exit(submit(firing("r2")))))
    assert.deepStrictEqual(host.running, [])
    host.manner = "deaf"
    assert.isTrue(Exit.isFailure(yield* Effect.exit(submit(firing("r3")))))
    assert.deepStrictEqual(host.running, ["r3"])
    host.manner = "hanging"
    const waiting = yield* Effect.forkChild(submit(firing("r4")), { startImmediately: true })
    assert.isUndefined(waiting.pollUnsafe())
    yield* Fiber.interrupt(waiting)
  })
)
