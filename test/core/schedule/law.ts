/**
 * The conservation law, read off the entries of a journal without any of its code: every slot is one of ran, skipped
 * and pending, exactly once, none before its time, and for a reason that holds.
 */
import type { ScheduleJournal } from "shiftboss"

type Entry = ScheduleJournal.ScheduleEvent
type EntryOf<Tag extends Entry["_tag"]> = Extract<Entry, { readonly _tag: Tag }>

const minute = 60_000
const day = 24 * 60 * minute

/** When slots are due, one after another from the first on. */
type Times = Iterator<number, undefined>

function* everySo(first: number, every: number): Generator<number, undefined> {
  for (let at = first; ; at += every) yield at
}

/** The values up to `most` that a field asks for. */
const asked = (field: string, most: number): ReadonlySet<number> => {
  const values = Array.from({ length: most + 1 }, (_, value) => value)
  const parts = field.split(",").map((part) => {
    const [range = "", step = "1"] = part.split("/")
    const [from = 0, to = from] = range === "*" ? [0, most] : range.split("-").map(Number)
    return { from, to, step: Number(step) }
  })
  return new Set(
    values.filter((value) =>
      parts.some(({ from, to, step }) => value >= from && value <= to && (value - from) % step === 0)
    )
  )
}

/** Goes through every minute there is. Knows zones without daylight saving, by their offset, and no months. */
function* matching(expression: string, first: number, offset: number): Generator<number, undefined> {
  const [minuteField = "", hourField = "", , , weekdayField = ""] = expression.split(" ")
  const [minutes, hours, weekdays] = [asked(minuteField, 59), asked(hourField, 23), asked(weekdayField, 6)]
  for (let at = first; ; at += minute) {
    const wall = at + offset
    const minuteOfDay = Math.floor(wall / minute) % 1440
    // 1 January 1970 was a Thursday
    const weekday = (Math.floor(wall / day) + 4) % 7
    if (minutes.has(minuteOfDay % 60) && hours.has(Math.floor(minuteOfDay / 60)) && weekdays.has(weekday)) yield at
  }
}

/** Zones the law knows, by how far their clocks are ahead. */
const offsets: { readonly [zone: string]: number } = {
  UTC: 0,
  "Asia/Kolkata": 330 * minute,
  "America/Bogota": -300 * minute
}

/** What is known of one schedule after so many entries. */
export class Account {
  readonly slots = new Map<number, string>()
  readonly runIds = new Map<number, string>()
  readonly endings = new Map<string, string>()
  readonly stops: Array<{ readonly at: number; readonly slot: number; readonly runIds: ReadonlyArray<string> }> = []
  state: "active" | "paused" | "stopped" = "active"
  isStopped = false
  isDeclared = false
  generation = 0
  streak: Array<string> = []
  limit = 0
  manualRuns = 0
  active: { readonly runId: string; readonly slot: number | null; readonly since: number } | undefined
  pending: EntryOf<"SlotPending">["plan"] | undefined
  #cadence: Pick<EntryOf<"ScheduleDeclared">, "everySeconds" | "cron"> = {}
  #grid: { readonly firstSlot: number; readonly known: Array<number>; readonly times: Times } | undefined
  readonly #lateWithin: number

  constructor(entries: ReadonlyArray<Entry>, lateWithinMillis: number) {
    this.#lateWithin = Math.max(minute, lateWithinMillis)
    for (const [i, entry] of entries.entries()) {
      try {
        this.#take(entry)
      } catch (error) {
        const before = JSON.stringify(entries.slice(Math.max(0, i - 5), i + 1))
        throw new Error(`${String(error)} in ${before}`, { cause: error })
      }
    }
  }

  get isFiring(): boolean {
    return this.state === "active" && this.isDeclared
  }

  get nextAt(): number {
    return this.dueAt(this.slots.size + 1)
  }

  /** When a slot of the present grid is due. */
  dueAt(slot: number): number {
    if (this.#grid === undefined) return Infinity
    const { firstSlot, known, times } = this.#grid
    while (known.length <= slot - firstSlot) known.push(times.next().value ?? Infinity)
    return known[slot - firstSlot] ?? Infinity
  }

  count(outcome: string): number {
    return [...this.slots.values()].filter((one) => one === outcome).length
  }

  /** What became of a slot: of one that ran, also how it ended. */
  outcomeOf(slot: number): string {
    const outcome = this.slots.get(slot) ?? "tocome"
    if (outcome !== "ran") return outcome
    const runId = this.runIds.get(slot) ?? ""
    return `ran: ${this.endings.get(runId) ?? "running"}`
  }

  /** What the journal has to say of it. Nobody gave a note. */
  summary(workflowId: string): ScheduleJournal.Summary {
    const { active, pending, stops } = this
    const { everySeconds, cron } = this.#cadence
    const [missed, overlap, refused, paused, stopped, removed] = [
      "missed",
      "overlap",
      "refused",
      "paused",
      "stopped",
      "removed"
    ].map((reason) => this.count(`skipped: ${reason}`))
    const stop = this.isStopped ? stops.at(-1) : undefined
    const whole = {
      workflowId,
      everySeconds,
      cron,
      generation: this.generation,
      nextAt: this.isFiring ? this.nextAt : null,
      lastSlot: this.slots.size,
      state: this.state,
      declared: this.isDeclared,
      ran: this.count("ran"),
      skipped: { missed, overlap, refused, paused, stopped, removed },
      failuresInARow: this.limit,
      failuresInRow: this.streak.length,
      failedRunIds: this.streak,
      stoppedAt: stop?.at,
      stoppedSlot: stop?.slot,
      stops: stops.slice(-20),
      pending,
      activeRunId: active?.runId,
      activeSlot: active?.slot ?? undefined,
      activeSince: active?.since,
      manualRuns: this.manualRuns
    }
    return Object.fromEntries(
      Object.entries(whole).filter(([, value]) => value !== undefined)
    ) as unknown as ScheduleJournal.Summary
  }

  #begin(at: number): void {
    const { everySeconds, cron } = this.#cadence
    const times =
      cron === undefined
        ? everySo(at, (everySeconds ?? 0) * 1000)
        : matching(cron.expression, at, offsets[cron.zone] ?? Number.NaN)
    this.#grid = { firstSlot: this.slots.size + 1, known: [], times }
    this.generation++
    check(this.nextAt === at, `the grid begins at ${at}, which is no time of it`)
  }

  /** Before a grid is left, or the schedule rests: what was due has been taken up. */
  #checkNothingDue(now: number): void {
    if (this.isFiring) check(this.nextAt > now, "a slot that was due is left behind")
  }

  #settle(outcome: string): void {
    for (const slot of slotsOf(this.pending)) {
      check(this.slots.get(slot) === "pending", `slot ${slot} is settled twice`)
      this.slots.set(slot, outcome)
    }
    this.pending = undefined
  }

  #takeUp({ plan, at, nextAt }: EntryOf<"SlotPending">): void {
    check(this.pending === undefined, "two are pending")
    this.pending = plan
    if (plan._tag === "Run") check(this.active === undefined, "a run is begun beside another one")
    if (plan._tag === "Run" && plan.slot === null) {
      check(plan.runId.endsWith(`@manual.${++this.manualRuns}`), "a run of a person has the wrong number")
      return
    }
    check(this.isFiring, "a slot is taken up while the schedule rests")
    const taken = slotsOf(plan)
    check(taken[0] === this.slots.size + 1, `slot ${taken[0]} follows ${this.slots.size}`)
    for (const slot of taken) {
      check(this.dueAt(slot) <= at, `slot ${slot} is taken up before its time`)
      this.slots.set(slot, "pending")
    }
    check(nextAt === this.nextAt, `the next slot is due at ${this.nextAt}`)
    const last = this.slots.size
    if (plan._tag === "Skip") {
      if (plan.reason === "overlap") check(this.active !== undefined, "a slot overlaps with nothing")
      return
    }
    check(plan.runId.endsWith(`@${this.generation}.${last}`), "a run has the id of another slot")
    check(plan.dueAt === this.dueAt(last), `slot ${last} was due at ${this.dueAt(last)}`)
    check(at - plan.dueAt <= this.#lateWithin, "a run begins too late")
    check(this.nextAt > at, "an older slot runs in place of the newest")
    this.runIds.set(last, plan.runId)
  }

  #end({ runId, ending }: EntryOf<"RunEnded">): void {
    check(this.active?.runId === runId, "a run ends that was not active")
    check(!this.endings.has(runId), "a run ends twice")
    this.endings.set(runId, ending)
    if (this.active?.slot !== null && !this.isStopped) {
      if (ending === "succeeded") this.streak = []
      if (ending === "failed") this.streak.push(runId)
    }
    this.active = undefined
  }

  #stop({ at, slot }: EntryOf<"ScheduleStopped">): void {
    this.#checkNothingDue(at)
    check(this.runIds.get(slot) === this.streak.at(-1), "it is stopped at another slot than the one that failed")
    this.stops.push({ at, slot, runIds: [...this.streak] })
    this.isStopped = true
    if (this.state === "active") this.state = "stopped"
  }

  #take(entry: Entry): void {
    // An edit of the limit comes right after the stop that it makes.
    const isOver = !this.isStopped && this.streak.length >= this.limit && this.limit > 0
    if (isOver) check(["ScheduleStopped", "SlotPending", "SlotsSkipped"].includes(entry._tag), "a streak stops nothing")
    switch (entry._tag) {
      case "ScheduleDeclared":
        this.#checkNothingDue(entry.at)
        check(entry.nextAt > entry.at, "declaring fires at once")
        this.#cadence = entry
        this.#begin(entry.nextAt)
        this.isDeclared = true
        this.limit = entry.failuresInARow
        break
      case "ScheduleEdited":
        this.limit = entry.failuresInARow
        break
      case "ScheduleRemoved":
        this.#checkNothingDue(entry.at)
        this.isDeclared = false
        break
      case "SchedulePaused":
        this.#checkNothingDue(entry.at)
        check(this.state !== "paused", "a paused one is paused")
        this.state = "paused"
        break
      case "ScheduleResumed":
        check(this.state !== "active", "an active one is resumed")
        check(entry.nextAt > entry.at, "resuming fires at once")
        this.state = "active"
        this.isStopped = false
        this.streak = []
        this.#begin(entry.nextAt)
        break
      case "ScheduleStopped":
        this.#stop(entry)
        break
      case "GridMoved":
        check(entry.nextAt < this.nextAt, "a grid moves away")
        this.#begin(entry.nextAt)
        check(entry.nextAt > entry.at + (this.#cadence.everySeconds ?? 0) * 1000, "a slot comes too soon after that")
        break
      case "SlotPending":
        this.#takeUp(entry)
        break
      case "RunAccepted":
        check(
          this.pending?._tag === "Run" && this.pending.runId === entry.runId,
          "a run is accepted that was not pending"
        )
        this.active = {
          runId: entry.runId,
          slot: this.pending?._tag === "Run" ? this.pending.slot : null,
          since: entry.at
        }
        this.#settle("ran")
        break
      case "RunRefused":
        check(
          this.pending?._tag === "Run" && this.pending.runId === entry.runId,
          "a run is refused that was not pending"
        )
        this.#settle(`skipped: ${entry.reason}`)
        break
      case "SlotsSkipped":
        check(this.pending?._tag === "Skip", "slots are skipped that were not pending")
        this.#settle(`skipped: ${entry.reason}`)
        break
      case "RunEnded":
        this.#end(entry)
        break
      case "ScheduleSaved":
        throw new Error("the law reads journals that were not compacted")
    }
  }
}

const slotsOf = (plan: Account["pending"]): ReadonlyArray<number> => {
  if (plan === undefined || (plan._tag === "Run" && plan.slot === null)) return []
  const [first, last] = plan._tag === "Skip" ? [plan.first, plan.last] : [plan.slot ?? 0, plan.slot ?? 0]
  if (last - first > 200_000) throw new Error("more slots than a test goes through")
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}

const check = (holds: boolean, broken: string) => {
  if (!holds) throw new Error(broken)
}
