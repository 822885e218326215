/**
 * Measures what the core adds to a bundle, and writes it to `docs/bundle.md`. Needs the build.
 *
 *     npm run bundle
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { build } from "vite"
import { root } from "./gate/command.ts"

export const bundleDocument = join(root, "docs/bundle.md")

interface Size {
  readonly what: string
  readonly minified: number
  readonly gzipped: number
}

/** The document may be this far off before it has to be written anew. */
const tolerance = 0.1

const bundleOf = async (source: string, external: ReadonlyArray<RegExp>): Promise<string> => {
  // Inside the package, so that its own name and its dependencies resolve.
  const folder = mkdtempSync(join(root, ".gate-bundle-"))
  try {
    const entry = join(folder, "entry.js")
    writeFileSync(entry, source)
    const result = await build({
      root: folder,
      configFile: false,
      logLevel: "error",
      build: {
        write: false,
        minify: true,
        lib: { entry, formats: ["es"], fileName: "bundle" },
        rolldownOptions: { external: [...external] }
      }
    })
    const [output] = Array.isArray(result) ? result : [result]
    if (output === undefined || !("output" in output)) {
      throw new Error("the bundler wrote nothing")
    }
    return output.output.map((chunk) => (chunk.type === "chunk" ? chunk.code : "")).join("")
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const size = async (what: string, source: string, external: ReadonlyArray<RegExp>): Promise<Size> => {
  const code = await bundleOf(source, external)
  return { what, minified: Buffer.byteLength(code), gzipped: gzipSync(code).byteLength }
}

// Everything is exported on, so that nothing is shaken off: the most the core can cost.
const everything = 'import * as Shiftboss from "shiftboss"\nexport default Shiftboss\n'

/** The sizes, in bytes. */
export const measureBundle = async (): Promise<ReadonlyArray<Size>> => [
  await size("the core, with `effect` left out", everything, [/^effect(\/|$)/]),
  await size("the core and what it uses of `effect`", everything, [])
]

const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1)

const row = ({ gzipped, minified, what }: Size) => `| ${what} | ${kilobytes(minified)} | ${kilobytes(gzipped)} |`

const render = (sizes: ReadonlyArray<Size>) => `# What the core costs in a bundle

\`import * as Shiftboss from "shiftboss"\` with everything kept: the most it can cost. A program that already uses Effect
pays the first line. Written by \`npm run bundle\`; the gate fails when it is more than ${tolerance * 100} % off.

| bundle | minified, kB | gzipped, kB |
| --- | ---: | ---: |
${sizes.map(row).join("\n")}
`

/** What the document says wrongly about these sizes, as sentences. */
export const stale = (document: string, sizes: ReadonlyArray<Size>): ReadonlyArray<string> =>
  sizes.flatMap((measured) => {
    const line = document.split("\n").find((candidate) => candidate.startsWith(`| ${measured.what} |`))
    const [, , minified, gzipped] = (line ?? "").split("|").map((cell) => Number(cell) * 1000)
    const off = (written: number | undefined, now: number) => !(Math.abs((written ?? 0) - now) <= now * tolerance)
    return off(minified, measured.minified) || off(gzipped, measured.gzipped)
      ? [`says "${line ?? "nothing"}" where it is "${row(measured)}"`]
      : []
  })

if (import.meta.main) {
  const sizes = await measureBundle()
  writeFileSync(bundleDocument, render(sizes))
  console.log(sizes.map(row).join("\n"))
}
