/**
 * Prints the counts of the last test run of the gate as one plain line, and fails when a test failed or none ran.
 */
import { readResults } from "./gate/tests.ts"

const { numFailedTests, numPassedTests } = readResults()
console.log(`${numPassedTests} passed, ${numFailedTests} failed`)
if (numPassedTests === 0 || numFailedTests > 0) {
  process.exitCode = 1
}
