/**
 * How many false repairs one harmless apply sets off, when each repair is itself a harmless apply with rechecks of its
 * own. After a build:
 *
 *     node test/bench/recheck-loop.bench.ts [trials]
 */
import { RecheckRule } from "shiftboss"
import { Loop, rulesOf, started } from "../core/recheck/loop.ts"
import { seeded } from "../core/recheck/support.ts"
import { table } from "./measure.ts"

const trials = Number(process.argv[2] ?? 2000)
const cases = 40
const mean = 0.67
const mostApplies = 60

interface World {
  readonly name: string
  readonly rate: (random: () => number) => number
  /** Runs of each case before the first apply, the one that completed it included. */
  readonly earlier: number
}

const spread = (by: number) => (random: () => number) => mean - by + 2 * by * random()

const worlds: ReadonlyArray<World> = [1, 10].flatMap((earlier) => {
  const known = earlier === 1 ? "completed once" : "ten earlier runs"
  return [
    { name: `all .67, ${known}`, rate: spread(0), earlier },
    { name: `.50 to .84, ${known}`, rate: spread(0.17), earlier },
    { name: `.34 to 1, ${known}`, rate: spread(0.33), earlier }
  ]
})

interface Found {
  readonly repairs: number
  readonly runs: number
}

const trial = (world: World, rule: RecheckRule.RecheckRule, random: () => number): Found => {
  const ids = Array.from({ length: cases }, (_, index) => `case-${index}`)
  const rates = new Map(ids.map((id) => [id, world.rate(random)]))
  const loop = new Loop(rulesOf({ rule, seed: Math.floor(random() * 2 ** 30) }), new Map(ids.map((id) => [id, 1])))
  for (const [id, rate] of rates) {
    const known = Array.from({ length: world.earlier - 1 }, () => random() < rate)
    const passed = 1 + known.filter(Boolean).length
    loop.state.histories.set(id, { passed, failed: world.earlier - passed, regressed: undefined, good: undefined })
  }
  const grade = (id: string) => (random() < rates.get(id)! ? "pass" : "failure")
  let runs = 0
  let repairs = 0
  loop.append([started(1)])
  // As many applies as there are repairs, each of them taking one.
  const waiting: Array<string | undefined> = [undefined]
  for (let n = 1; waiting.length > 0 && n <= mostApplies; n++) {
    const request = waiting.shift()
    loop.apply(n, request === undefined ? [] : [request])
    runs += loop.drain(grade)
    for (const id of loop.state.repairs.keys()) {
      if (waiting.includes(id)) continue
      waiting.push(id)
      repairs++
    }
  }
  return { repairs, runs }
}

const rules = [
  { name: "allFail(2)", rule: RecheckRule.allFail(2) },
  { name: "controlled", rule: RecheckRule.controlled() }
]

const rows: Array<ReadonlyArray<string>> = []
for (const world of worlds) {
  for (const { name, rule } of rules) {
    const random = seeded(1)
    const found = Array.from({ length: trials }, () => trial(world, rule, random))
    const average = (value: (one: Found) => number) => found.reduce((sum, one) => sum + value(one), 0) / trials
    const repairs = average((one) => one.repairs)
    const deviation = Math.sqrt(average((one) => (one.repairs - repairs) ** 2) / trials)
    rows.push([
      world.name,
      name,
      `${repairs.toFixed(2)} ± ${(2 * deviation).toFixed(2)}`,
      average((one) => one.runs).toFixed(1),
      rule._tag === "Controlled" ? "at most 0.2" : ""
    ])
  }
}
table(
  `One harmless apply, ${cases} cases that pass ${mean} of their runs on average, ${trials} trials`,
  ["cases", "rule", "false repairs", "runs", "goal"],
  rows
)
