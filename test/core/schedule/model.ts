/**
 * A slow, obvious schedule: it walks over every slot there is and keeps each of them. It knows no divisions, no records
 * and no journal, and its host always answers.
 */
export class Model {
  readonly slots: Array<string> = []
  state: "active" | "paused" | "stopped" = "active"
  isDeclared = true
  streak = 0
  nextAt: number
  /** The slot of the run that goes on. */
  active: number | undefined
  everyMillis: number
  readonly lateWithinMillis: number

  constructor(now: number, everyMillis: number, lateWithinMillis: number) {
    this.everyMillis = everyMillis
    this.lateWithinMillis = lateWithinMillis
    this.nextAt = now + everyMillis
  }

  #takeUp(now: number, decide: (dueAt: number, isNewest: boolean) => string): void {
    if (this.state !== "active" || !this.isDeclared) return
    while (this.nextAt <= now) {
      const dueAt = this.nextAt
      this.nextAt += this.everyMillis
      this.slots.push(decide(dueAt, this.nextAt > now))
      if (this.slots.at(-1) === "ran") this.active = this.slots.length
    }
  }

  /** After the clock was set far back: nearer by as many slots as leave two before the next one. */
  #comeNearer(now: number): void {
    if (this.state !== "active" || !this.isDeclared) return
    while (this.nextAt - now > 2 * this.everyMillis) this.nextAt -= this.everyMillis
  }

  tick(now: number, ended: "succeeded" | "failed" | "cancelled" | undefined): void {
    if (this.active !== undefined && ended !== undefined) {
      this.active = undefined
      if (ended === "succeeded") this.streak = 0
      if (ended === "failed") this.streak++
      if (this.streak >= 3 && this.state !== "stopped") {
        this.#takeUp(now, () => "stopped")
        if (this.state === "active") this.state = "stopped"
      }
    }
    this.#takeUp(now, (dueAt, isNewest) => {
      if (!isNewest || now - dueAt > Math.max(60_000, this.lateWithinMillis)) return "missed"
      return this.active === undefined ? "ran" : "overlap"
    })
    this.#comeNearer(now)
  }

  pause(now: number): void {
    this.#takeUp(now, () => "paused")
    this.state = "paused"
  }

  resume(now: number): void {
    if (this.state === "active") return
    this.state = "active"
    this.streak = 0
    this.nextAt = now + this.everyMillis
  }

  declare(now: number, everyMillis: number | undefined): void {
    if (everyMillis === undefined) {
      this.#takeUp(now, () => "removed")
      this.isDeclared = false
      return
    }
    if (this.isDeclared && everyMillis === this.everyMillis) return
    this.#takeUp(now, () => "missed")
    this.isDeclared = true
    this.everyMillis = everyMillis
    this.nextAt = now + everyMillis
  }

  count(outcome: string): number {
    return this.slots.filter((slot) => slot === outcome).length
  }
}
