/**
 * What a patch changes, by file: of git, of `diff -u` and of programs that print the like.
 *
 * Lines are told from headers by the lengths that each hunk announces: a removed line `-- x` looks like a header otherwise.
 */

// -----------------------------------------------------------------------------
// models
// -----------------------------------------------------------------------------

export interface FileChange {
  readonly path: string
  /** Where it was, when it was renamed or copied. */
  readonly from: string | undefined
  readonly how: "changed" | "added" | "removed" | "renamed" | "copied"
  readonly isBinary: boolean
  readonly added: number
  readonly removed: number
}

export interface Changes {
  /** The first of them. */
  readonly files: ReadonlyArray<FileChange>
  /** Of all files. */
  readonly count: number
  readonly added: number
  readonly removed: number
}

/** So many files are kept; the sums are of all. */
const mostFiles = 200

type Draft = { -readonly [field in keyof FileChange]: FileChange[field] }

// -----------------------------------------------------------------------------
// reading
// -----------------------------------------------------------------------------

/** Nothing when the text is no patch. */
export const read = (patch: string): Changes | undefined => {
  const lines = patch.split("\n")
  const files: Array<Draft> = []
  // Set from the header of git until its first hunk: what else it says of the file.
  let header: Draft | undefined
  for (let at = 0; at < lines.length;) {
    const line = lineAt(lines, at)
    if (line.startsWith("diff --git ")) {
      header = { ...draft(), ...pathsOfGit(line.slice("diff --git ".length)) }
      files.push(header)
      at++
    } else if (isMarks(lines, at)) {
      const file = header ?? draft()
      if (header === undefined) files.push(file)
      nameByMarks(file, line, lineAt(lines, at + 1))
      header = undefined
      at = readHunks(lines, at + 2, file)
    } else {
      const binary = /^Binary files (.+) and (.+) differ$/.exec(line)
      if (header !== undefined) noteHeader(header, line)
      else if (binary !== null) files.push({ ...draft(), ...pathsOf(binary[1]!, binary[2]!), isBinary: true })
      at++
    }
  }
  return files.length === 0 ? undefined : sumOf(files)
}

const lineAt = (lines: ReadonlyArray<string>, at: number): string => {
  const line = lines[at] ?? ""
  return line.endsWith("\r") ? line.slice(0, -1) : line
}

const draft = (): Draft => ({ path: "", from: undefined, how: "changed", isBinary: false, added: 0, removed: 0 })

const sumOf = (files: ReadonlyArray<Draft>): Changes => {
  let added = 0
  let removed = 0
  for (const file of files) {
    added += file.added
    removed += file.removed
  }
  return { files: files.slice(0, mostFiles), count: files.length, added, removed }
}

// -----------------------------------------------------------------------------
// hunks
// -----------------------------------------------------------------------------

const hunk = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/

/** Three lines together, for either of the first two may stand in any text. */
const isMarks = (lines: ReadonlyArray<string>, at: number): boolean =>
  lineAt(lines, at).startsWith("--- ") && lineAt(lines, at + 1).startsWith("+++ ") && hunk.test(lineAt(lines, at + 2))

/** Counts the lines of all hunks in a row, and answers where they end. */
const readHunks = (lines: ReadonlyArray<string>, start: number, file: Draft): number => {
  let at = start
  for (;;) {
    const found = hunk.exec(lineAt(lines, at))
    if (found === null) return at
    at = readHunk(lines, at + 1, file, Number(found[2] ?? 1), Number(found[4] ?? 1))
    while (lineAt(lines, at).startsWith("\\")) at++ // no newline at the end of the file
  }
}

const readHunk = (lines: ReadonlyArray<string>, start: number, file: Draft, old: number, now: number): number => {
  let at = start
  for (; (old > 0 || now > 0) && at < lines.length; at++) {
    const line = lines[at]!
    if (line.startsWith("+")) {
      file.added++
      now--
    } else if (line.startsWith("-")) {
      file.removed++
      old--
    } else if (line.startsWith(" ") || line === "" || line === "\r") {
      // Some editors and mailers take the space of an empty line away.
      old--
      now--
    } else if (!line.startsWith("\\")) return at // shorter than it says
  }
  return at
}

// -----------------------------------------------------------------------------
// names
// -----------------------------------------------------------------------------

const noteHeader = (file: Draft, line: string): void => {
  if (line.startsWith("new file mode ")) file.how = "added"
  else if (line.startsWith("deleted file mode ")) file.how = "removed"
  else if (line.startsWith("Binary files ") || line === "GIT binary patch") file.isBinary = true
  else {
    const moved = /^(rename|copy) (from|to) (.+)$/.exec(line)
    if (moved === null) return
    file.how = moved[1] === "rename" ? "renamed" : "copied"
    if (moved[2] === "from") file.from = unquoted(moved[3]!)
    else file.path = unquoted(moved[3]!)
  }
}

/** The names over the hunks, which say more than those of git's header unless that told of a rename. */
const nameByMarks = (file: Draft, old: string, now: string): void => {
  if (file.how === "renamed" || file.how === "copied") return
  const nameOf = (mark: string) => unquoted(mark.slice("--- ".length).split("\t", 1)[0]!)
  const { how, path } = pathsOf(nameOf(old), nameOf(now))
  file.path = path
  if (file.how === "changed") file.how = how
}

type Paths = Pick<FileChange, "path" | "how">

const nothing = "/dev/null"

/** Git puts a letter before each name: `a/` and `b/`, or others that say what is compared. */
const prefix = /^[abciow12]\//

const pathsOf = (old: string, now: string): Paths => {
  if (old === nothing) return { path: now.replace(prefix, ""), how: "added" }
  if (now === nothing) return { path: old.replace(prefix, ""), how: "removed" }
  return { path: isPrefixed(old, now) ? now.slice(2) : now, how: "changed" }
}

/** Without prefixes both names begin with the same folder. */
const isPrefixed = (old: string, now: string): boolean => prefix.test(old) && prefix.test(now) && old[0] !== now[0]

/** Names with spaces are not quoted here. Where nothing tells where the first ends, other lines tell more. */
const pathsOfGit = (names: string): Paths => {
  const quoted = /^(?:"((?:[^"\\]|\\.)*)"|(\S+)) (?:"((?:[^"\\]|\\.)*)"|(\S+))$/.exec(names)
  if (quoted !== null) {
    return pathsOf(quoted[2] ?? unescaped(quoted[1] ?? ""), quoted[4] ?? unescaped(quoted[3] ?? ""))
  }
  const middle = (names.length - 1) / 2
  const [old, now] = [names.slice(0, middle), names.slice(middle + 1)]
  if (names[middle] === " " && old.replace(prefix, "") === now.replace(prefix, "")) return pathsOf(old, now)
  return { path: names, how: "changed" }
}

const unquoted = (name: string): string => (/^".*"$/.test(name) ? unescaped(name.slice(1, -1)) : name)

const escapes: { readonly [letter: string]: string } = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v"
}

/** Names as C writes strings: bytes of UTF-8 in octal. */
const unescaped = (name: string): string => {
  const bytes = Array.from(name.matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/gs), ([text, octal, letter]) => {
    if (octal !== undefined) return Buffer.of(Number.parseInt(octal, 8) & 0xff)
    return Buffer.from(letter === undefined ? text : (escapes[letter] ?? letter))
  })
  return Buffer.concat(bytes).toString()
}
