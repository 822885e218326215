// A loop that keeps pages of itself: what goes on now, and what each edit took, changed and broke. Prints the page of its edit.
//
//   node examples/pages.ts
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Console, Effect, Layer, Schema } from "effect"
import { Case, Dispatcher, Improvements, Verdict } from "shiftboss"
import { FileStorage, NodeMain, Pages } from "shiftboss/node"

const patch = `--- a/rules.md
+++ b/rules.md
@@ -1 +1,2 @@
 Read dates as day, month, year.
+A month may be a word.
`

const loop = Dispatcher.run(
  {
    cases: Effect.succeed([{ id: "3/5/2024" }, { id: "3 May 2024" }]),
    train: (one, seat) =>
      Effect.gen(function* () {
        if (one.id.includes("May")) yield* seat.park("rule", "cannot read a month that is a word")
        return Case.completed()
      }),
    improve: {
      request: Schema.String,
      apply: () => Effect.succeed(Improvements.changed("v1", "v2", patch)),
      recheck: () => Effect.succeed(Verdict.right<string>())
    }
  },
  { rechecks: 4 }
)

const directory = mkdtempSync(join(tmpdir(), "pages-"))

// The pages are beside the logs. They are those of the end when this has ended.
const recorded = Effect.provide(
  loop,
  Pages.layer({ directory }).pipe(Layer.provideMerge(Dispatcher.layer), Layer.provide(FileStorage.layer(directory)))
)

recorded.pipe(
  Effect.andThen(Effect.suspend(() => Console.log(readFileSync(join(directory, "applies", "001.md"), "utf8")))),
  Effect.ensuring(Effect.sync(() => rmSync(directory, { recursive: true }))),
  NodeMain.runMain
)
