import { Heap } from "../Heap.ts"

/** So many entries are not worth tidying up. */
const fewEntries = 64

/** When each schedule is to be looked at next. Looking at the head is constant, a change is logarithmic. */
export class Agenda {
  readonly #at = new Map<string, number>()
  /** Holds entries that were replaced too: they are dropped when they come up. */
  readonly #heap = new Heap<string>()

  set(workflowId: string, at: number): void {
    if (at === Infinity) {
      this.#at.delete(workflowId)
      return
    }
    this.#at.set(workflowId, at)
    this.#heap.push(at, workflowId)
    if (this.#heap.size > 2 * this.#at.size + fewEntries) this.#rebuild()
  }

  /** When a schedule is to be looked at; `Infinity` when it is not. */
  at(workflowId: string): number {
    return this.#at.get(workflowId) ?? Infinity
  }

  /** How many entries it keeps, replaced ones included. */
  get size(): number {
    return this.#heap.size
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

  /** Without it, replaced entries of a far time would pile up until that time. */
  #rebuild(): void {
    this.#heap.clear()
    for (const [workflowId, at] of this.#at) this.#heap.push(at, workflowId)
  }

  #dropReplaced(): void {
    for (let head = this.#heap.peek(); head !== undefined; head = this.#heap.peek()) {
      if (this.#at.get(head) === this.#heap.least) return
      this.#heap.pop()
    }
  }
}
