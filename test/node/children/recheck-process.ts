/**
 * Applies and rechecks on files until it is killed. Says each run of a try before it counts and when the try was given it,
 * and each apply.
 */
import { Effect, Layer, Schema } from "effect"
import { Case, Dispatcher, Improvements, type Rechecks, Verdict } from "shiftboss"
import { FileStorage } from "shiftboss/node"

const logs = process.argv[2] ?? ""
const say = (line: string) => Effect.sync(() => console.log(line))

/** Apply 001 breaks `a`, and the next one repairs it. */
const recheck = Effect.fnUntraced(function* (one: Rechecks.Try, seat: Dispatcher.Seat) {
  const { key } = seat.info
  yield* seat.step("run", Effect.delay(say(`run ${key}`), "5 millis"))
  yield* say(`given ${key}`)
  const isBroken = one.apply === "001" && one.arm === "new" && one.case.id === "a"
  return isBroken ? Verdict.wrong({ missing: one.version }) : Verdict.right<never>()
})

await Effect.runPromise(
  Dispatcher.run(
    {
      cases: Effect.succeed(["a", "b", "c", "ask"].map((id) => ({ id }))),
      train: (case_, seat) =>
        Effect.gen(function* () {
          if (case_.id === "ask") yield* seat.park("rule", { missing: "x" })
          return Case.completed()
        }),
      improve: {
        request: Schema.Struct({ missing: Schema.String }),
        controls: true,
        recheck,
        apply: ({ name, requests, version }) =>
          Effect.as(
            say(`apply ${name} of ${requests.map(({ id }) => id).join()}`),
            Improvements.changed(version ?? "v0", `v${name}`)
          )
      }
    },
    { seats: 2, rechecks: 3 }
  ).pipe(Effect.provide(Dispatcher.layer.pipe(Layer.provide(FileStorage.layer(logs)))))
)
