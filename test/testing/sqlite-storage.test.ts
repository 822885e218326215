import { DatabaseSync } from "node:sqlite"
import { describe, it } from "@effect/vitest"
import { Data, Effect, Option, Stream } from "effect"
import type { Storage } from "shiftboss"
import { storageConformance } from "shiftboss/testing"

class SqliteError extends Data.TaggedError("SqliteError")<{ readonly cause: unknown }> {}

/** A storage of a host's own, in a database it has anyway: what `docs/ports.md` tells to write. */
const makeSqlite = (database: DatabaseSync): Storage.Encoded => {
  // With `synchronous = full` a commit is on the disk when it returns.
  database.exec(`
    pragma synchronous = full;
    create table if not exists logs (log text primary key, epoch integer not null, holder text, renewed integer not null);
    create table if not exists lines (log text not null, at integer not null, line text not null, primary key (log, at));
  `)
  const current = database.prepare("select epoch, holder, renewed from logs where log = ?")
  const lock = database.prepare(`
    insert into logs (log, epoch, holder, renewed) values (?, ?, ?, ?)
    on conflict do update set epoch = excluded.epoch, holder = excluded.holder, renewed = excluded.renewed
  `)
  const renew = database.prepare("update logs set renewed = ? where log = ? and epoch = ? and holder is not null")
  const release = database.prepare("update logs set holder = null where log = ? and epoch = ?")
  const cut = database.prepare("delete from lines where log = ? and at >= ?")
  const insert = database.prepare("insert into lines (log, at, line) values (?, ?, ?)")
  const page = database.prepare("select line from lines where log = ? and at >= ? order by at limit 1000")
  const names = database.prepare("select distinct log from lines")

  // SQLite keeps text up to its first NUL and no lone surrogates; as JSON a name has neither.
  const key = (log: string) => JSON.stringify(log)
  const text = (value: unknown) => String(value)

  const transaction = <A>(work: () => A): Effect.Effect<A, SqliteError> =>
    Effect.try({
      try: () => {
        database.exec("begin immediate")
        try {
          const result = work()
          database.exec("commit")
          return result
        } catch (error) {
          database.exec("rollback")
          throw error
        }
      },
      catch: (cause) => new SqliteError({ cause })
    })

  const lockOf = (log: string): Storage.Lock | undefined => {
    const row = current.get(key(log))
    if (row === undefined || row["holder"] === null) return undefined
    return { epoch: Number(row["epoch"]), holder: text(row["holder"]), renewedAt: Number(row["renewed"]) }
  }
  const isSame = (one: Storage.Lock, other: Storage.Lock) =>
    one.epoch === other.epoch && one.holder === other.holder && one.renewedAt === other.renewedAt
  const whileHeld = (log: string, epoch: number, work: () => void) =>
    transaction(() => {
      if (lockOf(log)?.epoch !== epoch) return false
      work()
      return true
    })
  const write = (log: string, from: number, lines: ReadonlyArray<string>) => {
    cut.run(key(log), from)
    for (const [index, line] of lines.entries()) insert.run(key(log), from + index, line)
  }

  return {
    acquire: (log, holder, { now, dead }) =>
      transaction((): Storage.Acquired => {
        const held = lockOf(log)
        if (held !== undefined && (dead === undefined || !isSame(held, dead.lock))) return { _tag: "Held", lock: held }
        const epoch = Number(current.get(key(log))?.["epoch"] ?? 0) + 1
        lock.run(key(log), epoch, holder, now)
        return { _tag: "Acquired", epoch }
      }),
    renew: (log, epoch, now) => transaction(() => renew.run(now, key(log), epoch).changes === 1),
    release: (log, epoch) => Effect.asVoid(transaction(() => release.run(key(log), epoch))),
    append: (log, epoch, standing, lines) => whileHeld(log, epoch, () => write(log, standing, lines)),
    replace: (log, epoch, lines) => whileHeld(log, epoch, () => write(log, 0, lines)),
    lines: (log) =>
      Stream.paginate(0, (from) =>
        Effect.map(
          transaction(() => page.all(key(log), from)),
          (rows) => [
            rows.map((row) => text(row["line"])),
            rows.length < 1000 ? Option.none() : Option.some(from + rows.length)
          ]
        )
      ),
    names: Stream.fromIterableEffect(
      Effect.map(
        transaction(() => names.all()),
        (rows) => rows.map((row): string => JSON.parse(text(row["log"])))
      )
    ),
    remove: (log, epoch) => whileHeld(log, epoch, () => cut.run(key(log), 0))
  }
}

describe("a host's own storage in SQLite", () => {
  const encoded = Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(":memory:")),
      (database) => Effect.sync(() => database.close())
    ),
    makeSqlite
  )
  for (const { name, run } of storageConformance({ encoded })) it.effect(name, () => run)
})
