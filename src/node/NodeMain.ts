/**
 * The main program of a host: what a signal means to it.
 */
import { Effect, Latch, Runtime } from "effect"
import { Dispatcher } from "shiftboss"

/** See `Runtime.makeRunMain`. */
export interface Options {
  /** Does not log the error that the program failed with. Default: false. */
  readonly disableErrorReporting?: boolean | undefined
  /** What the exit code is. Default: 0 for success, 130 for an interruption, else 1, or the error's own. */
  readonly teardown?: Runtime.Teardown | undefined
}

/**
 * Signals nearer to each other than this are one: on Ctrl-C a program started by `npm run` hears of it twice, from the
 * terminal and from npm, which forwards it.
 */
const oneSignalMillis = 250

/**
 * Runs the program as the main one of this process. The first SIGINT or SIGTERM stops its dispatchers between steps, as
 * `Dispatcher.stop` does, and the program goes on to its own end; the second interrupts the program at once; a third
 * does what it does to any process.
 *
 * *Details*: a program without a dispatcher can wait for `Dispatcher.StopSignal` itself. After a signal the process exits
 * when the program ends, whatever else keeps it alive.
 */
export const runMain = <A, E>(program: Effect.Effect<A, E>, options?: Options): void => {
  const stop = Latch.makeUnsafe()
  const main = Runtime.makeRunMain(({ fiber, teardown }) => {
    let first: number | undefined
    const listen = () => process.on("SIGINT", onSignal).on("SIGTERM", onSignal)
    const unlisten = () => process.off("SIGINT", onSignal).off("SIGTERM", onSignal)
    const onSignal = () => {
      const now = performance.now()
      if (first === undefined) {
        first = now
        stop.openUnsafe()
      } else if (now - first > oneSignalMillis) {
        unlisten()
        fiber.interruptUnsafe(fiber.id)
      }
    }
    listen()
    fiber.addObserver((exit) => {
      unlisten()
      teardown(exit, (code) => {
        if (first !== undefined || code !== 0) process.exit(code)
      })
    })
  })
  main(Effect.provideService(program, Dispatcher.StopSignal, stop.await), options)
}
