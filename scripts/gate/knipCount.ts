/**
 * A reporter that tells how many files were looked at, which knip's own do not.
 */
import type { ReporterOptions } from "knip"

export default ({ counters }: ReporterOptions): void => console.log(`looked at ${counters.processed} files`)
