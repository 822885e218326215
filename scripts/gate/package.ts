/**
 * The steps that look at what is published: the build, the packed tarball, and a stranger's use of it.
 */
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { publint } from "publint"
import { formatMessage } from "publint/utils"
import { bundleDocument, measureBundle, stale } from "../bundle.ts"
import { attempt, root, run } from "./command.ts"
import type { Checked } from "./step.ts"

const manifest = () => JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

export const build = async (): Promise<Checked> => {
  await run("npm", ["run", "build"])
  return { count: globSync("dist/**/*.js", { cwd: root }).length, of: "modules" }
}

const packFolder = join(root, ".gate/package")

/** Packs the package the way a release does, and answers where the tarball is. */
const pack = async (): Promise<string> => {
  rmSync(packFolder, { recursive: true, force: true })
  mkdirSync(packFolder, { recursive: true })
  await run("npm", ["pack", "--pack-destination", packFolder])
  const [tarball, ...others] = readdirSync(packFolder)
  if (tarball === undefined || others.length > 0) {
    throw new Error(`npm pack should have written one tarball to ${packFolder}`)
  }
  return join(packFolder, tarball)
}

/** What may be in the tarball; anything else was packed by accident. */
const publishable = /^package\/((dist|src)\/(core|node|testing)\/.*|package\.json|README\.md|LICENSE|CHANGELOG\.md)$/

export const packed = async (): Promise<Checked> => {
  const tarball = await pack()
  const files = (await run("tar", ["-tzf", tarball])).stdout.trim().split("\n")
  const strays = files.filter((file) => !publishable.test(file) || /tsbuildinfo$|tsconfig/.test(file))
  const lacking = ["LICENSE", "CHANGELOG.md", "src/core/index.ts"].filter((file) => !files.includes(`package/${file}`))
  const content = readFileSync(tarball)
  const { messages, pkg } = await publint({
    strict: true,
    pack: { tarball: content.buffer.slice(content.byteOffset, content.byteOffset + content.byteLength) }
  })
  const faults = [
    ...strays.map((file) => `${file} does not belong into the package`),
    ...lacking.map((file) => `${file} is missing in the package`),
    ...messages.filter(({ type }) => type !== "suggestion").map((message) => formatMessage(message, pkg))
  ]
  if (faults.length > 0) {
    throw new Error(faults.join("\n"))
  }
  return { count: files.length, of: "packed files" }
}

// -----------------------------------------------------------------------------
// smoke test
// -----------------------------------------------------------------------------

const refuseNode = ["--import", "./refuseNode.mjs"]

/** Runs a program where every import of a `node:` module is refused. */
const runWithoutNode = (consumer: string, program: string) =>
  attempt("node", [...refuseNode, program], { cwd: consumer })

const install = (consumer: string, packages: ReadonlyArray<string>) =>
  run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", "--save-exact", ...packages], { cwd: consumer })

const typeCheck = (consumer: string, project: string) =>
  run(join(root, "node_modules/.bin/tsc"), ["-p", project, "--pretty", "false"], { cwd: consumer })

/** The core and the testing kit with nothing but `effect` beside them. */
const smokeCore = async (consumer: string, tarball: string): Promise<void> => {
  await install(consumer, [tarball, `effect@${manifest().devDependencies.effect}`])
  const unwanted = readdirSync(join(consumer, "node_modules")).filter((name) => /^(@effect|@types)$/.test(name))
  if (unwanted.length > 0) {
    throw new Error(`installing shiftboss and effect also brought ${unwanted.join(", ")}`)
  }
  await typeCheck(consumer, "tsconfig.nodenext.json")
  await typeCheck(consumer, "tsconfig.bundler.json")
  const control = await runWithoutNode(consumer, "usesNode.mjs")
  if (control.ok) {
    throw new Error("a program that imports node:fs was not refused: the proof proves nothing")
  }
  const ended = await runWithoutNode(consumer, "program.mjs")
  if (!ended.ok) {
    throw new Error(`a program that imports shiftboss and shiftboss/testing failed:\n${ended.output}`)
  }
}

/** The adapters, with the packages they ask for. */
const smokeNode = async (consumer: string): Promise<void> => {
  const { devDependencies } = manifest()
  const wanted = ["@effect/platform-node", "@types/node"]
  await install(
    consumer,
    wanted.map((name) => `${name}@${devDependencies[name]}`)
  )
  await typeCheck(consumer, "tsconfig.node.json")
  await run("node", ["programNode.mjs"], { cwd: consumer })
}

export const smoke = async (): Promise<Checked> => {
  const tarball = await pack()
  const consumer = mkdtempSync(join(tmpdir(), "shiftboss-consumer-"))
  try {
    cpSync(join(root, "scripts/consumer"), consumer, { recursive: true })
    writeFileSync(join(consumer, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }))
    await smokeCore(consumer, tarball)
    await smokeNode(consumer)
    return { count: readdirSync(join(root, "scripts/consumer")).length, of: "consumer files" }
  } finally {
    rmSync(consumer, { recursive: true, force: true })
  }
}

export const bundle = async (): Promise<Checked> => {
  const sizes = await measureBundle()
  const written = readFileSync(bundleDocument, "utf8")
  const faults = stale(written, sizes)
  if (faults.length > 0) {
    throw new Error(`docs/bundle.md is out of date, run npm run bundle:\n${faults.join("\n")}`)
  }
  return { count: sizes.length, of: "bundles measured" }
}
