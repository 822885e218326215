/** For docs/dispatcher.md: cases, steps and results. */
import { Clock, Effect, Schema } from "effect"
import { Case, type Dispatcher } from "shiftboss"

/** Stand in for an agent and a grader. */
const ask = (text: string) =>
  Effect.map(Clock.currentTimeMillis, (now) => ({ text: text.toUpperCase(), at: new Date(now) }))
const grade = (answer: string) => Effect.succeed(!answer.includes("?"))

interface Question extends Case.Case {
  readonly text: string
}

const Answer = Schema.Struct({ text: Schema.String, at: Schema.Date })

const train = (question: Question, seat: Dispatcher.Seat) =>
  Effect.gen(function* () {
    const answer = yield* seat.step("ask", { result: Answer }, ask(question.text))
    const right = yield* seat.step("grade", grade(answer.text))
    return right ? Case.completed(answer.text) : Case.difficult(`"${answer.text}" is not an answer`)
  })

export const workload = (questions: ReadonlyArray<Question>) => ({ cases: Effect.succeed(questions), train })
