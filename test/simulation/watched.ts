/**
 * The oracle of logs: what was acknowledged is recovered, what is recovered was attempted, both in order and in whole groups.
 * It watches one log after another from outside, over all processes that open it.
 */
import { Effect, Stream } from "effect"
import { Storage } from "shiftboss"

/** The entries of one call, of which either all are there or none. */
interface Attempt {
  readonly texts: ReadonlyArray<string>
  readonly begunAt: number
  acknowledgedAt: number
  /** Set when a later holder did not find it: nobody may acknowledge it any more. */
  isLost: boolean
}

/** A content the log may have: what it began with, and what was then appended. */
interface Content {
  readonly begin: ReadonlyArray<string>
  readonly attempts: Array<Attempt>
  /** Those that were under way together with it, and may have come before it. */
  readonly replaced: Set<Attempt>
  readonly begunAt: number
  acknowledgedAt: number
}

const textsOf = (entries: ReadonlyArray<Storage.Json>) => entries.map((entry) => JSON.stringify(entry))

/**
 * The attempts that are in the texts; nothing when the texts are no outcome of them. Attempts that were under way at the same
 * time may stand in any order, one that was acknowledged before another began stands before it.
 */
const explain = (content: Content, texts: ReadonlyArray<string>): ReadonlySet<Attempt> | undefined => {
  const { begin, attempts, replaced } = content
  const has = (attempt: Attempt, before: number) => !replaced.has(attempt) && attempt.acknowledgedAt < before
  if (begin.some((text, index) => texts[index] !== text)) return undefined
  const left = new Set(attempts)
  const found = new Set<Attempt>()
  for (let at = begin.length; at < texts.length;) {
    const isHere = ({ texts: own }: Attempt) => own.length > 0 && own.every((text, index) => texts[at + index] === text)
    // Of two alike, one is as good as the other, and one that was acknowledged has to be somewhere.
    const here = [...left].filter(isHere)
    const attempt = here.find((one) => has(one, Infinity)) ?? here[0]
    if (attempt === undefined) return undefined
    left.delete(attempt)
    if ([...left].some((other) => has(other, attempt.begunAt))) return undefined
    found.add(attempt)
    at += attempt.texts.length
  }
  return [...left].some((attempt) => attempt.texts.length > 0 && has(attempt, Infinity)) ? undefined : found
}

export class WatchedLogs {
  readonly broken: Array<string> = []
  private readonly logs = new Map<string, Array<Content>>()
  private moment = 0

  /** The storage, with everything that is read and written through it looked at. */
  over(storage: Storage.Storage["Service"], isNewest: (log: string) => boolean): Storage.Storage["Service"] {
    return Storage.Storage.of({
      ...storage,
      open: (name) =>
        Effect.gen({ self: this }, function* () {
          const log = yield* storage.open(name)
          const texts = textsOf(yield* Stream.runCollect(log.replay))
          // One that was taken for dead while it read may find less than its successor has written.
          if (isNewest(name)) this.recovered(name, texts)
          return {
            ...log,
            append: (entries) => this.watch(name, "append", entries, log.append(entries)),
            replace: (entries) => this.watch(name, "replace", entries, log.replace(entries))
          }
        })
    })
  }

  private recovered(name: string, texts: ReadonlyArray<string>): void {
    const contents = this.logs.get(name) ?? [this.content([], 0)]
    this.logs.set(name, [this.content(texts, 0)])
    for (const content of contents) {
      const found = explain(content, texts)
      if (found === undefined) continue
      for (const { attempts } of contents) for (const attempt of attempts) attempt.isLost = !found.has(attempt)
      return
    }
    this.broken.push(`${name} was opened with ${texts.length} entries that are no outcome of what was written to it`)
  }

  private content(
    begin: ReadonlyArray<string>,
    acknowledgedAt: number,
    underWay: ReadonlyArray<Attempt> = []
  ): Content {
    return { begin, attempts: [...underWay], replaced: new Set(underWay), begunAt: ++this.moment, acknowledgedAt }
  }

  private watch<A, E>(
    name: string,
    kind: "append" | "replace",
    entries: ReadonlyArray<Storage.Json>,
    write: Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    return Effect.suspend(() => {
      const acknowledged = kind === "append" ? this.append(name, entries) : this.replace(name, entries)
      return Effect.tap(write, () => Effect.sync(acknowledged))
    })
  }

  private append(name: string, entries: ReadonlyArray<Storage.Json>) {
    const texts = textsOf(entries)
    const attempt: Attempt = { texts, begunAt: ++this.moment, acknowledgedAt: Infinity, isLost: false }
    for (const content of this.logs.get(name) ?? []) {
      content.attempts.push(attempt)
      if (content.acknowledgedAt === Infinity) content.replaced.add(attempt)
    }
    return () => {
      attempt.acknowledgedAt = ++this.moment
      if (attempt.isLost) this.broken.push(`${name}: entries were acknowledged that the next holder had not found`)
    }
  }

  private replace(name: string, entries: ReadonlyArray<Storage.Json>) {
    const contents = this.logs.get(name) ?? []
    const underWay = new Set(
      contents.flatMap(({ attempts }) => attempts.filter((one) => one.acknowledgedAt === Infinity))
    )
    const made = this.content(textsOf(entries), Infinity, [...underWay])
    contents.push(made)
    return () => {
      made.acknowledgedAt = ++this.moment
      const now = this.logs.get(name) ?? []
      const mayStand = (other: Content) => other.acknowledgedAt > made.begunAt
      if (now.includes(made)) this.logs.set(name, now.filter(mayStand))
    }
  }
}
