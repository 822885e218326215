import { BaseSequencer, type TestSpecification } from "vitest/node"
import project from "../../vitest.config.ts"
import { areas } from "./areas.ts"

const tests = areas[process.env["MUTATION_AREA"] ?? ""]?.tests ?? []

/** What found the last mutant is likely to find the next one; then the quick ones, for one that fails ends the run. */
class QuickFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const rank = (file: TestSpecification) => {
      const last = this.ctx.cache.getTestSpecificationResult(file)
      return last?.failed === true ? -1 : (last?.duration ?? Infinity)
    }
    return files.toSorted((one, other) => rank(one) - rank(other))
  }
}

// Not typed as vitest types it: the mutation has a vitest of its own.
const area: object = {
  ...project,
  test: {
    ...project.test,
    include: [...tests],
    // Modules are loaded once, not once for each file of tests: most of the time of a mutant would go into that.
    isolate: false,
    testTimeout: 10_000,
    sequence: { sequencer: QuickFirst }
  }
}

export default area
