// A host whose logs and pages share a folder. It prints the name of each apply that it begins.
import { Console, Effect, Layer, Schema } from "effect"
import { Case, Dispatcher, Improvements, type Rechecks, Verdict } from "shiftboss"
import { FileStorage, NodeMain, Pages } from "shiftboss/node"

const directory = process.argv[2]!

/** Every fourth edit breaks what is rechecked after it. */
const recheck = (one: Rechecks.Try, seat: Dispatcher.Seat) =>
  Effect.as(
    seat.step("try", Effect.sleep("2 millis")),
    Number(one.apply) % 4 === 0 ? Verdict.wrong(`broken by ${one.apply}`) : Verdict.right<string>()
  )

const program = Dispatcher.run(
  {
    cases: Effect.succeed(Array.from({ length: 24 }, (_, n) => ({ id: `case ${n}` }))),
    train: (one, seat) =>
      Effect.gen(function* () {
        yield* seat.step("work", Effect.sleep("2 millis"))
        yield* seat.park("rule", `a rule for ${one.id}`)
        return Case.completed()
      }),
    improve: {
      request: Schema.String,
      apply: ({ name, version }) =>
        Effect.as(
          Effect.andThen(Console.log(name), Effect.sleep("2 millis")),
          Improvements.changed(
            version ?? "v0",
            `v${name}`,
            `--- a/rules\n+++ b/rules\n@@ -1 +1 @@\n-${version}\n+${name}\n`
          )
        ),
      recheck
    }
  },
  { seats: 3, applyAt: 2, rechecks: 3 }
)

program.pipe(
  Effect.provide(
    Pages.layer({ directory }).pipe(Layer.provideMerge(Dispatcher.layer), Layer.provide(FileStorage.layer(directory)))
  ),
  NodeMain.runMain
)
