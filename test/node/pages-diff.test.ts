import { execFileSync } from "node:child_process"
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Diff from "../../src/node/internal/pages/diff.ts"
import { folder } from "./support/folders.ts"

/** Each file as `how path +added -removed`. */
const lines = (patch: string) =>
  Diff.read(patch)?.files.map(({ added, from, how, isBinary, path, removed }) =>
    [how, path, from === undefined ? "" : `from ${from}`, isBinary ? "binary" : `+${added} -${removed}`]
      .filter((part) => part !== "")
      .join(" ")
  )

const patch = (...all: ReadonlyArray<string>) => `${all.join("\n")}\n`

describe("what a patch changes", () => {
  it.live("is what git says of its own patches, whatever the files are called", () =>
    Effect.gen(function* () {
      const path = yield* folder
      const git = (...args: ReadonlyArray<string>) =>
        execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.test", ...args], {
          cwd: path,
          encoding: "utf8"
        })
      const write = (file: string, text: string | Buffer) => writeFileSync(join(path, file), text)
      git("init", "--quiet")
      mkdirSync(join(path, "a b"))
      write("a b/with space.txt", "1\n2\n3\n")
      write('grüße\t"quoted".txt', "x\n")
      write("moved.txt", "one\ntwo\nthree\nfour\nfive\n")
      write("gone.sql", "-- drop\n++ odd\n")
      write("picture.bin", Buffer.from([0, 1, 2, 3]))
      write("no-end.txt", "a")
      write("same.txt", "same\n")
      write("script.sh", "echo\n")
      git("add", ".")
      git("commit", "--quiet", "--message", "before")
      write("a b/with space.txt", "1\n3\nlast -- \n--- a/x\n+++ b/x\n@@ -1 +1 @@\n")
      write('grüße\t"quoted".txt', "y\r\nz\r\n")
      renameSync(join(path, "moved.txt"), join(path, "moved to.txt"))
      write("moved to.txt", "one\ntwo\nthree\nfour\nfive\nsix\n")
      rmSync(join(path, "gone.sql"))
      write("picture.bin", Buffer.from([0, 9, 2, 3]))
      write("no-end.txt", "b")
      write("new.txt", "fresh\n")
      write("empty.txt", "")
      execFileSync("chmod", ["+x", "script.sh"], { cwd: path })
      git("add", ".")
      const expected = git("diff", "--cached", "--numstat", "-z", "--find-renames", "HEAD")
      for (const options of [
        [],
        ["--binary"],
        ["--unified=0"],
        ["--no-prefix"],
        ["-c"],
        ["--src-prefix=i/", "--dst-prefix=w/"]
      ]) {
        const read = Diff.read(git("diff", "--cached", "--find-renames", ...options, "HEAD"))
        // Added, removed and name; of a rename the name is empty and both follow.
        const shown = read!.files.map(({ added, from, isBinary, path: name, removed }) =>
          [...(isBinary ? ["-", "-"] : [added, removed]), from === undefined ? name : `\0${from}\0${name}`].join("\t")
        )
        assert.strictEqual(shown.map((line) => `${line}\0`).join(""), expected, options.join(" "))
        assert.strictEqual(
          read!.files.map(({ how }) => how).join(" "),
          "changed added removed changed renamed added changed changed changed"
        )
        assert.strictEqual(read!.count, read!.files.length)
      }
    })
  )

  it("is read of what GNU `diff -ru` prints", () => {
    const printed = patch(
      "diff -ru old/a.txt new/a.txt",
      "--- old/a.txt\t2026-01-01 00:00:00.000000000 +0000",
      "+++ new/a.txt\t2026-01-01 00:00:00.000000000 +0000",
      "@@ -1,2 +1,3 @@",
      " 1",
      "-2",
      "+3",
      "+4",
      "diff -ru old/b.txt new/b.txt",
      "--- old/b.txt\t2026-01-01 00:00:00.000000000 +0000",
      "+++ new/b.txt\t2026-01-01 00:00:00.000000000 +0000",
      "@@ -1 +1 @@",
      "-x",
      "\\ No newline at end of file",
      "+y",
      "\\ No newline at end of file",
      "Only in old: only.txt",
      "Binary files old/z.bin and new/z.bin differ"
    )
    assert.deepStrictEqual(lines(printed), [
      "changed new/a.txt +2 -1",
      "changed new/b.txt +1 -1",
      "changed new/z.bin binary"
    ])
  })

  it("counts lines that look like headers as lines", () => {
    const one = patch("--- a/x.sql", "+++ b/x.sql", "@@ -1,2 +1,2 @@", "--- a comment", "-- b", "+++ c", "+@@ -1 +1 @@")
    assert.deepStrictEqual(lines(one), ["changed x.sql +2 -2"])
  })

  it("knows files that came and went, also without git", () => {
    const two = patch(
      "--- /dev/null",
      "+++ b/new",
      "@@ -0,0 +1 @@",
      "+x",
      "--- a/old",
      "+++ /dev/null",
      "@@ -1 +0,0 @@",
      "-x"
    )
    assert.deepStrictEqual(lines(two), ["added new +1 -0", "removed old +0 -1"])
  })

  it("tells a file of git from one of another program behind it", () => {
    const hunk = ["@@ -1 +1 @@", "-1", "+2"]
    const both = patch("diff --git a/x b/x", "--- a/x", "+++ b/x", ...hunk, "--- y.old", "+++ y", ...hunk)
    assert.deepStrictEqual(lines(both), ["changed x +1 -1", "changed y +1 -1"])
  })

  it("keeps names that only look as if they had a prefix", () => {
    const one = patch("diff --git a/x a/x", "--- a/x", "+++ a/x", "@@ -1 +1 @@", "-1", "+2")
    assert.deepStrictEqual(lines(one), ["changed a/x +1 -1"])
  })

  it("reads on behind a hunk that is shorter than it says, and lines that lost their space", () => {
    const two = patch(
      ...["diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1,9 +1,9 @@", "-1", "+2", "", " c"],
      ...["diff --git a/y b/y", "--- a/y", "+++ b/y", "@@ -1 +1 @@", "-1", "+2", "\\ No newline at end of file"]
    )
    assert.deepStrictEqual(lines(two), ["changed x +1 -1", "changed y +1 -1"])
  })

  it("is read of a patch whose own lines end in CRLF", () => {
    const one = "diff --git a/x b/x\r\n--- a/x\r\n+++ b/x\r\n@@ -1,2 +1,2 @@\r\n-1\r\n+2\r\n\r\n"
    assert.deepStrictEqual(lines(one), ["changed x +1 -1"])
  })

  it("is nothing of a text that is no patch", () => {
    for (const text of [
      "",
      "+ a rule",
      "--- a\n+++ b\n",
      "---\n+++\n@@ -1 +1 @@\n",
      "# Rules\n--- \n",
      "@@ -1 +1 @@\n-a\n+b"
    ]) {
      assert.isUndefined(Diff.read(text), text)
    }
  })

  it("keeps the first 200 files, and counts all of them", () => {
    const one = (n: number) => `diff --git a/${n} b/${n}\n--- a/${n}\n+++ b/${n}\n@@ -1 +1,2 @@\n-1\n+2\n+3\n`
    const all = Diff.read(Array.from({ length: 1_000 }, (_, n) => one(n)).join(""))
    assert.deepStrictEqual([all?.files.length, all?.count, all?.added, all?.removed], [200, 1_000, 2_000, 1_000])
  })

  it("is read of any text without a fault, and of five million characters at once", () => {
    const line = fc.constantFrom(
      "diff --git a/x b/x",
      'diff --git "a/\\303" b',
      "--- a",
      "+++ b",
      "@@ -1,2 +3 @@",
      "-",
      "+",
      " ",
      "\\",
      "rename from x",
      "x"
    )
    fc.assert(
      fc.property(fc.array(line), (all) => void Diff.read(all.join("\n"))),
      { numRuns: 2_000 }
    )
    const start = performance.now()
    const big = Diff.read(`--- a/x\n+++ b/x\n@@ -0,0 +1,2500000 @@\n${"+\n".repeat(2_500_000)}`)
    assert.strictEqual(big?.added, 2_500_000)
    Diff.read(`diff --git ${'"\\'.repeat(2_500_000)}`)
    assert.isBelow(performance.now() - start, 10_000)
  })
})
