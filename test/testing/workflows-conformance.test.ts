import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Scope } from "effect"
import { type ScheduleJournal, Storage } from "shiftboss"
import { ScriptedWorkflows, workflowsConformance, type WorkflowsSubject } from "shiftboss/testing"
import { makeInProcess } from "../../src/core/internal/schedule/inProcess.ts"

type Workflows = ScheduleJournal.Workflows["Service"]
type Host = Effect.Success<WorkflowsSubject["host"]>
type Task = Parameters<Host["workflowId"]>[0]

const effects: { readonly [task in Task]: Effect.Effect<void, string> } = {
  succeed: Effect.sleep("20 millis"),
  fail: Effect.andThen(Effect.sleep("20 millis"), Effect.fail("no")),
  work: Effect.never
}
const tasks = Object.keys(effects) as ReadonlyArray<Task>
const workflowId = (task: Task) => `workflow/${task}`

/** The host of `layerEffects`. */
const inProcess = (resumable: boolean): WorkflowsSubject => ({
  host: Effect.gen(function* () {
    const storage = Storage.fromEncoded(Storage.makeMemory())
    const begun: Array<string> = []
    const runs = new Map(
      tasks.map((task) => {
        const run = ({ runId }: { readonly runId: string }) =>
          Effect.andThen(
            Effect.sync(() => begun.push(runId)),
            effects[task]
          )
        return [workflowId(task), { run, resumable }]
      })
    )
    const open = (scope: Scope.Scope) => Scope.provide(makeInProcess(storage, "runs", runs, Context.empty()), scope)
    const first = yield* Scope.make()
    const outer = yield* Effect.scope
    return {
      workflows: yield* open(first),
      workflowId,
      starts: (runId: string) => Effect.sync(() => begun.filter((one) => one === runId).length),
      restart: Effect.andThen(Scope.close(first, Exit.void), open(outer))
    }
  })
})

const scripted: WorkflowsSubject = {
  host: Effect.sync(() => {
    const host = ScriptedWorkflows.make()
    host.mannerOf.set("refused", "refusing")
    const submit = (firing: ScheduleJournal.Firing) =>
      Effect.tap(host.workflows.submit(firing), () =>
        Effect.sync(() => {
          if (firing.workflowId === workflowId("succeed")) host.end("succeeded", [firing.runId])
          if (firing.workflowId === workflowId("fail")) host.end("failed", [firing.runId])
        })
      )
    // It is a host that outlives the process that asks it.
    const workflows = { ...host.workflows, submit }
    return { workflows, workflowId, refused: "refused", restart: Effect.succeed(workflows) }
  })
}

const subjects = {
  "the host of layerEffects": inProcess(false),
  "the host of layerEffects with resumable runs": inProcess(true),
  ScriptedWorkflows: scripted
}
for (const [kind, subject] of Object.entries(subjects)) {
  describe(`${kind}`, () => {
    for (const { name, run } of workflowsConformance(subject)) it.live(name, () => run)
  })
}

/** A host in a few lines, and what it may get wrong. */
const makeFlawed = (flaw: string): WorkflowsSubject => ({
  patience: "200 millis",
  host: Effect.gen(function* () {
    const runs = new Map<string, Fiber.Fiber<unknown, unknown>>()
    const taken = new Set<string>()
    const begun: Array<string> = []
    const scope = yield* Effect.scope
    const start = ({ runId, workflowId: id }: ScheduleJournal.Firing) =>
      Effect.suspend(() => {
        begun.push(runId)
        const task = tasks.find((one) => workflowId(one) === id) ?? "work"
        return Effect.tap(Effect.forkIn(effects[task], scope), (fiber) =>
          Effect.sync(() => runs.set(flaw === "mixes runs up" ? id : runId, fiber))
        )
      })
    const workflows: Workflows = {
      submit: Effect.fnUntraced(function* (firing) {
        const { runId, workflowId: id } = firing
        if (id === "refused") {
          if (flaw === "starts what it refuses") yield* start(firing)
          return { _tag: "Refused", reason: "closed" }
        }
        const run = runs.get(runId)
        if (flaw === "starts a running one again" && run?.pollUnsafe() === undefined) taken.delete(runId)
        if (flaw === "starts an ended one again" && run?.pollUnsafe() !== undefined) taken.delete(runId)
        if (taken.has(runId)) return { _tag: "Accepted" }
        if (flaw === "looks before it writes") yield* Effect.yieldNow
        taken.add(runId)
        if (flaw === "writes before it starts") yield* Effect.yieldNow
        const fiber = yield* start(firing)
        if (flaw === "waits for the run") yield* Fiber.await(fiber)
        return { _tag: "Accepted" }
      }),
      outcome: (runId) =>
        Effect.sync(() => {
          const run = runs.get(flaw === "mixes runs up" ? runId.slice(0, runId.lastIndexOf("@")) : runId)
          if (run === undefined) return flaw === "knows every run" || taken.has(runId) ? "lost" : "unknown"
          const exit = run.pollUnsafe()
          if (exit === undefined) return "running"
          if (flaw === "forgets how a run ended") runs.delete(runId)
          if (flaw === "calls a failure a success") return "succeeded"
          return Exit.isSuccess(exit) ? "succeeded" : "failed"
        })
    }
    const restart = Effect.sync(() => {
      if (flaw === "forgets all when it ends") for (const memory of [runs, taken]) memory.clear()
      return workflows
    })
    const starts = (runId: string) => Effect.sync(() => begun.filter((one) => one === runId).length)
    return { workflows, workflowId, starts, restart, refused: "refused" }
  })
})

describe("the suite", () => {
  const broken = Effect.fnUntraced(function* (flaw: string) {
    const exits = yield* Effect.forEach(
      workflowsConformance(makeFlawed(flaw)),
      ({ name, run }) => Effect.map(Effect.exit(run), (exit) => ({ name, isBroken: Exit.isFailure(exit) })),
      { concurrency: "unbounded" }
    )
    return exits.flatMap(({ name, isBroken }) => (isBroken ? [name] : []))
  })

  it.live("lets a sound host pass", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* broken("none"), [])
    })
  )

  const flaws = {
    "knows every run": "knows nothing of a run that was never submitted",
    "waits for the run": "takes a run without waiting for it, and says that it is running",
    "forgets how a run ended": "says how a run ended, whenever it is asked",
    "calls a failure a success": "says how a run ended, whenever it is asked",
    "mixes runs up": "keeps runs apart: of two workflows, and of one",
    "starts what it refuses": "never starts a run that it refused",
    "starts a running one again": "starts a run once that is submitted twice",
    "looks before it writes": "starts a run once that is submitted twice at the same time",
    "starts an ended one again": "does not start a run again that has ended",
    "writes before it starts": "starts a run once when the request for it was cut off and is made again",
    "forgets all when it ends": "never forgets that it took a run, so that none is submitted to it anew"
  }
  for (const [flaw, rule] of Object.entries(flaws)) {
    it.live(`finds a host that ${flaw}`, () =>
      Effect.gen(function* () {
        assert.include(yield* broken(flaw), rule)
      })
    )
  }
})
