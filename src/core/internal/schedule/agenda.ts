import { Heap } from "../Heap.ts"

/** When each schedule is to be looked at next. Looking at the head is constant, a change is logarithmic. */
export class Agenda {
  readonly #at = new Map<string, number>()
  /** Holds entries that were replaced too: they are dropped when they come up. */
  readonly #heap = new Heap<string>()

  set(workflowId: string, at: number): void {
    if (this.#at.get(workflowId) === at) return
    if (at === Infinity) {
      this.#at.delete(workflowId)
      return
    }
    this.#at.set(workflowId, at)
    this.#heap.push(at, workflowId)
  }

  /** When the first of them is to be looked at; `Infinity` when none is. */
  get earliest(): number {
    this.#dropReplaced()
    return this.#heap.least
  }

  /** Takes the schedules whose time has come. */
  take(now: number): ReadonlyArray<string> {
    const taken: Array<string> = []
    while (this.earliest <= now) {
      const workflowId = this.#heap.pop()
      if (workflowId === undefined) break
      this.#at.delete(workflowId)
      taken.push(workflowId)
    }
    return taken
  }

  #dropReplaced(): void {
    for (let head = this.#heap.peek(); head !== undefined; head = this.#heap.peek()) {
      if (this.#at.get(head) === this.#heap.least) return
      this.#heap.pop()
    }
  }
}
