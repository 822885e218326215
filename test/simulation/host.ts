/**
 * The host's side of a simulation: what outlives its processes – the system that applies edit, what agents were asked, which
 * scheduled runs there were – and the rules that hold over all of it.
 */
import { Effect } from "effect"
import {
  type AgentLauncher,
  type DispatcherEvent,
  Improvements,
  type Rechecks,
  type ScheduleJournal,
  Verdict
} from "shiftboss"
import { ScriptedWorkflows, type Simulation } from "shiftboss/testing"

type Simulator = Simulation.Simulator["Service"]

/** What a case asks an apply for. */
export interface Payload {
  readonly case: string
}

/** What a case does, one after the other. Times are in seconds. */
export type Action =
  | { readonly do: "step"; readonly seconds: number; readonly reads: boolean; readonly fails: boolean }
  | { readonly do: "park" }
  | { readonly do: "turn" }
  | { readonly do: "hold"; readonly seconds: number }

export interface Script {
  readonly id: string
  readonly actions: ReadonlyArray<Action>
}

/** One edit of the system. */
interface Edit {
  readonly name: string
  readonly requests: ReadonlyArray<string>
  /** The cases it broke, and those it mended. */
  readonly broke: ReadonlySet<string>
  readonly mended: ReadonlySet<string>
}

/** What one process has under way: it ends with it. */
class Busy {
  readonly cases = new Set<string>()
  /** Scheduled runs that are effects of it. */
  readonly runs = new Set<string>()
  reading = 0
  applying = false
  /** When the apply began, by the clock that nobody sets. */
  applyingSince = 0
}

// -----------------------------------------------------------------------------
// the host
// -----------------------------------------------------------------------------

export class Host {
  readonly broken: Array<string> = []
  readonly scripts: ReadonlyArray<Script>
  readonly workflows = ScriptedWorkflows.make()
  /** Nothing of the host's own fails any more. */
  isCalm = false
  /** Two processes may work at once: one was taken for dead, and nobody could know better. */
  mayOverlap = false
  /** A process may stand still between being given a seat and taking it. */
  mayPause = false

  readonly simulator: Simulator
  private readonly ended = new Set<string>()
  private readonly edits: Array<Edit> = []
  private readonly observed = new Set<string>()
  private readonly begun = new Map<string, string>()
  private readonly taken = new Map<string, string>()
  private readonly attempts = new Map<string, number>()
  private readonly answered = new Set<string>()
  /** Since when nothing may fire, as a person was told; epoch milliseconds. */
  private pausedSince = Infinity
  private readonly asked = new Set<string>()
  private readonly begunInside = new Set<string>()
  private readonly busy = new Map<number, Busy>()

  constructor(simulator: Simulator) {
    this.simulator = simulator
    const cases = 1 + simulator.pickUnsafe("cases", 5)
    this.scripts = Array.from({ length: cases }, (_, index) => ({ id: `c${index}`, actions: actionsOf(simulator) }))
  }

  expect(holds: boolean, rule: string): void {
    if (!holds) this.broken.push(rule)
  }

  /** True seldom, and never in quiet. */
  fails(label: string, probability: number): boolean {
    return !this.isCalm && this.simulator.chanceUnsafe(label, probability)
  }

  /** A process is gone: so is what it had under way. */
  bury(life: number): void {
    this.busy.delete(life)
  }

  // --- seats and steps ---

  enter(life: number, id: string, seats: number) {
    return this.while(
      life,
      (busy) => {
        const others = this.mayOverlap ? [busy] : [...this.busy.values()]
        this.expect(!others.some(({ cases }) => cases.has(id)), `${id} is on two seats`)
        busy.cases.add(id)
        this.expect(busy.cases.size <= seats, `${busy.cases.size} run on ${seats} seats`)
        const before = busy.applying && busy.applyingSince < this.simulator.monotonicMillisUnsafe()
        this.expect(this.mayPause || !before, `${id} was seated during an apply`)
      },
      (busy) => busy.cases.delete(id)
    )
  }

  /** The body of a step. */
  step(life: number, name: string, seconds: number, reads: boolean) {
    return Effect.scoped(
      Effect.andThen(
        this.while(
          life,
          (busy) => {
            this.expect(!this.ended.has(name), `the step ${name} ran again after it had ended`)
            if (reads) busy.reading++
            this.expect(!(reads && busy.applying), `the step ${name} reads during an apply`)
          },
          (busy) => void (reads && busy.reading--)
        ),
        Effect.sleep(seconds * 1000)
      )
    )
  }

  /** Its result was given to the case. */
  stepEnded(name: string): void {
    this.ended.add(name)
  }

  // --- applies ---

  get version(): string {
    return this.edits.at(-1)?.name ?? "v0"
  }

  /** One apply: an edit that takes a while, is made at once, and is idempotent by its name. */
  apply(life: number, batch: Improvements.Batch<Payload>) {
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const requests = batch.requests.map(({ id }) => id)
        yield* this.while(
          life,
          (busy) => {
            this.expect(busy.reading === 0 && !busy.applying, `apply ${batch.name} is not alone`)
            busy.applying = true
            busy.applyingSince = this.simulator.monotonicMillisUnsafe()
          },
          (busy) => (busy.applying = false)
        )
        this.checkBatch(batch, requests)
        yield* Effect.sleep(this.simulator.pickUnsafe("apply.seconds", 60) * 1000)
        const before = this.version
        // One that was made and not recorded is there already: failing now would leave its requests to another one.
        if (this.edits.some(({ name }) => name === batch.name)) return Improvements.changed(before, before)
        if (this.fails("apply.fails", 0.1)) return yield* Effect.fail("the edit failed")
        this.edit(batch, requests)
        return Improvements.changed(before, this.version)
      })
    )
  }

  private checkBatch(batch: Improvements.Batch<Payload>, requests: ReadonlyArray<string>): void {
    const { name, again } = batch
    const text = requests.join()
    if (again) this.simulator.markUnsafe("apply called again")
    this.expect(!this.observed.has(name), `apply ${name} was called again after it had ended`)
    this.expect(!this.begun.has(name) || this.begun.get(name) === text, `apply ${name} was called with another batch`)
    this.begun.set(name, text)
  }

  private edit(batch: Improvements.Batch<Payload>, requests: ReadonlyArray<string>): void {
    for (const request of requests) {
      const other = this.taken.get(request)
      this.expect(other === undefined, `${request} was taken by ${other} and by ${batch.name}`)
      this.taken.set(request, batch.name)
    }
    const repairs = batch.requests.filter(({ why }) => why === "repair").map((request) => request.case)
    if (repairs.length > 0) this.simulator.markUnsafe("regression repaired")
    const broke = this.scripts.filter(() => this.fails("apply.breaks", 0.2)).map(({ id }) => id)
    this.edits.push({ name: batch.name, requests, broke: new Set(broke), mended: new Set(repairs) })
  }

  /** A case was told what the apply of its request did. */
  woken(applied: Improvements.Applied): void {
    if (applied._tag === "Changed") this.observed.add(applied.to)
  }

  /** What a graded run of the case says on a version: the last edit up to there that touched it decides. */
  grade(one: Rechecks.Try): Verdict.Verdict<Payload> {
    this.checkVersion(one)
    const until = this.edits.findIndex(({ name }) => name === one.version)
    const edit = this.edits
      .slice(0, until + 1)
      .findLast(({ broke, mended }) => broke.has(one.case.id) || mended.has(one.case.id))
    return edit?.broke.has(one.case.id) === true ? Verdict.wrong({ case: one.case.id }) : Verdict.right()
  }

  /** A run of an arm says something of its version only. */
  private checkVersion({ apply, arm, case: { id }, version }: Rechecks.Try): void {
    const [of, at] = [apply, version].map((name) => this.edits.findIndex((edit) => edit.name === name))
    if (arm === "new") return this.expect(at === of, `${id} was rechecked on ${version}, after apply ${apply}`)
    this.simulator.markUnsafe("control run")
    this.expect(
      at! < of! && (at! >= 0 || version === "v0"),
      `the control of ${id} for apply ${apply} ran on the version "${version}"`
    )
  }

  // --- turns ---

  launched({ turnId, number }: AgentLauncher.Attempt): void {
    this.expect(!this.answered.has(turnId), `the turn ${turnId} was launched again after it had been answered`)
    const last = this.attempts.get(turnId) ?? 0
    this.expect(number > last, `attempt ${number} of the turn ${turnId} was launched after attempt ${last}`)
    this.attempts.set(turnId, number)
  }

  turnAnswered(turnId: string): void {
    this.answered.add(turnId)
  }

  // --- schedules ---

  /** The person was told that it is paused. What was planned before is settled first. */
  paused(since: number): void {
    this.pausedSince = Math.min(this.pausedSince, since)
  }

  /** The person is about to have it resumed. */
  resumed(): void {
    this.pausedSince = Infinity
  }

  /** The person was told that this run was begun. */
  askedFor(runId: string): void {
    this.asked.add(runId)
  }

  fired({ runId, slot, dueAt }: ScheduleJournal.Firing): void {
    this.expect(this.mayOverlap || slot === null || dueAt < this.pausedSince, `${runId} was fired while it was paused`)
  }

  /** A run that is an effect of the process. */
  runInProcess(life: number, { runId, again }: ScheduleJournal.EffectFiring, resumable: boolean) {
    const { simulator } = this
    return Effect.scoped(
      Effect.gen({ self: this }, function* () {
        const before = this.begunInside.has(runId)
        if (before) simulator.markUnsafe("run in the process taken up again")
        this.expect(resumable || !before, `the run ${runId}, which is not resumable, was begun twice`)
        this.expect(!before || again, `the run ${runId} was begun again, and not told so`)
        this.begunInside.add(runId)
        yield* this.while(
          life,
          (busy) => {
            this.expect(!busy.runs.has(runId), `the run ${runId} is under way twice`)
            busy.runs.add(runId)
          },
          (busy) => busy.runs.delete(runId)
        )
        yield* Effect.onInterrupt(Effect.sleep(simulator.pickUnsafe("inside.seconds", 300) * 1000), () =>
          Effect.sync(() => simulator.markUnsafe("run in the process cut off"))
        )
        if (this.fails("inside.fails", 0.2)) return yield* Effect.fail("the run broke")
        simulator.markUnsafe("run in the process ended")
      })
    )
  }

  // --- at the end ---

  /** Every request that was sent was taken, once, by an edit that was made. */
  /** Each request is taken, and nothing is said to begin while an apply is under way. */
  checkApplies(events: ReadonlyArray<DispatcherEvent.DispatcherEvent>): void {
    let applying: string | undefined
    for (const event of events) {
      switch (event._tag) {
        case "ApplyStarted":
          applying = event.apply
          break
        case "ApplyEnded":
        case "ApplyFailed":
          applying = undefined
          break
        case "CaseParked":
          this.expect(this.taken.has(event.request), `${event.request} was never taken`)
          break
        case "CaseResumed":
        case "CaseRevised":
        case "RecheckStarted":
          this.expect(applying === undefined, `${event._tag} of ${event.case} was journaled during apply ${applying}`)
      }
    }
  }

  checkRuns(): void {
    const all = this.workflows.submitted
    const runs = new Map(all.map((firing) => [firing.runId, firing]))
    for (const runId of this.asked) this.expect(runs.has(runId), `${runId}, which was said to be begun, never was`)
    // One that was taken for dead may ask once more for what its successor has asked for: the id tells that it is the same.
    this.expect(
      this.mayOverlap || runs.size === all.length,
      `a run was started twice: ${all.map((run) => run.runId).join(" ")}`
    )
    const slots = [...runs.values()].flatMap(({ slot }) => (slot === null ? [] : [slot]))
    this.expect(new Set(slots).size === slots.length, `a slot was fired twice: ${slots.join(" ")}`)
  }

  private while(life: number, begin: (busy: Busy) => void, end: (busy: Busy) => void) {
    const busy = () => {
      const known = this.busy.get(life) ?? new Busy()
      this.busy.set(life, known)
      return known
    }
    return Effect.acquireRelease(
      Effect.sync(() => begin(busy())),
      () => Effect.sync(() => end(busy()))
    )
  }
}

const actionsOf = (simulator: Simulator): ReadonlyArray<Action> =>
  Array.from({ length: simulator.pickUnsafe("actions", 6) }, (): Action => {
    const kind = simulator.pickUnsafe("action", 6)
    if (kind === 3) return { do: "park" }
    if (kind === 4) return { do: "turn" }
    const seconds = simulator.pickUnsafe("action.seconds", 60)
    if (kind === 5) return { do: "hold", seconds }
    return { do: "step", seconds, reads: kind === 1, fails: kind === 2 }
  })
