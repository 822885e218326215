/**
 * One run of so many cases with one step each, in memory or in files; prints what it took, as JSON.
 */
import { Effect, Layer } from "effect"
import { Dispatcher, Storage } from "shiftboss"
import { FileStorage } from "shiftboss/node"
import { ids, noOp } from "./logs.ts"
import { seconds } from "./measure.ts"

const [size, folder] = process.argv.slice(2)
const run = Dispatcher.run({ cases: Effect.succeed(ids("case", Number(size))), train: noOp }, { seats: 8 })
const storage = folder === undefined ? Storage.layerMemory : FileStorage.layer(folder)
const taken = await seconds(() => Effect.runPromise(Effect.provide(run, Dispatcher.layer.pipe(Layer.provide(storage)))))
console.log(JSON.stringify({ seconds: taken, peakMegabytes: process.resourceUsage().maxRSS / 1024 }))
