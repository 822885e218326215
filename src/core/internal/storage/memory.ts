/**
 * The seam over a map: what tests put faults into.
 */
import { Effect, Stream } from "effect"
import type { AcquireOptions, Encoded, Lock } from "../../Storage.ts"

interface Stored {
  /** Changed in place: a copy for each append would make a long log cost its square. */
  readonly lines: Array<string>
  readonly epoch: number
  readonly lock: Lock | undefined
}

const nothing = (): Stored => ({ lines: [], epoch: 0, lock: undefined })

const isSame = (lock: Lock, other: Lock) =>
  lock.epoch === other.epoch && lock.holder === other.holder && lock.renewedAt === other.renewedAt

export const memoryEncoded = (): Encoded => {
  const logs = new Map<string, Stored>()
  const stored = (log: string) => logs.get(log) ?? nothing()
  const acquire = (log: string, holder: string, { now, dead }: AcquireOptions) => {
    const current = stored(log)
    if (current.lock !== undefined && (dead === undefined || !isSame(current.lock, dead.lock))) {
      return { _tag: "Held", lock: current.lock } as const
    }
    const epoch = current.epoch + 1
    logs.set(log, { ...current, epoch, lock: { epoch, holder, renewedAt: now } })
    return { _tag: "Acquired", epoch } as const
  }
  const whileHeld = (log: string, epoch: number, change: (current: Stored, lock: Lock) => Partial<Stored>) =>
    Effect.sync(() => {
      const current = stored(log)
      if (current.lock?.epoch !== epoch) return false
      logs.set(log, { ...current, ...change(current, current.lock) })
      return true
    })
  return {
    acquire: (log, holder, options) => Effect.sync(() => acquire(log, holder, options)),
    renew: (log, epoch, renewedAt) => whileHeld(log, epoch, (_, lock) => ({ lock: { ...lock, renewedAt } })),
    release: (log, epoch) => Effect.asVoid(whileHeld(log, epoch, () => ({ lock: undefined }))),
    append: (log, epoch, standing, lines) =>
      whileHeld(log, epoch, (current) => {
        current.lines.length = standing
        for (const line of lines) current.lines.push(line)
        return {}
      }),
    replace: (log, epoch, lines) => whileHeld(log, epoch, () => ({ lines: [...lines] })),
    lines: (log) => Stream.suspend(() => Stream.fromArray([...stored(log).lines])),
    names: Stream.suspend(() =>
      Stream.fromArray([...logs].filter(([, { lines }]) => lines.length > 0).map(([name]) => name))
    ),
    remove: (log, epoch) => whileHeld(log, epoch, () => ({ lines: [] }))
  }
}
