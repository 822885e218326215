// Text that tries to be Markdown, and a reader that finds what of a page is not inside code, by the rules of CommonMark.
import * as fc from "fast-check"

/** Pieces that mean something to Markdown, a terminal or a decoder; hostile text is made of them. */
const pieces = [
  ...[
    "`",
    "``",
    "```",
    "`````",
    "|",
    "\\",
    "\\|",
    "\\\\|",
    "~~~",
    "$`",
    "*",
    "_",
    "~~",
    "&amp;",
    "&#124;",
    "<b>",
    "<!--"
  ],
  ...[
    "[x](http://e.test)",
    "![i](j)",
    "[r]: /x",
    "http://e.test",
    "www.e.test",
    "a@b.test",
    "# h",
    "- ",
    "1. ",
    "> ",
    "---"
  ],
  ...[
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "\t",
    " ",
    "    ",
    "\0",
    "\u001b[31m",
    "\u001b]8;;http://e.test\u0007",
    "\u007f",
    "\u0085"
  ],
  ...["\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\u{e0041}", "\ud800", "\udc00", "é", "👩‍👩", "x", "word"]
]
export const hostile = fc.array(fc.constantFrom(...pieces), { maxLength: 12 }).map((parts) => parts.join(""))

export const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ud800-\udfff]/u

/** What is left of a line when its code spans are taken away, as CommonMark finds them: from a run to the next as long. */
export const outsideCode = (line: string): string => {
  const runs = [...line.matchAll(/`+/g)]
  let rest = ""
  let at = 0
  for (let n = 0; n < runs.length; n++) {
    const open = runs[n]!
    if (open.index < at) continue
    const close = runs.slice(n + 1).find((run) => run[0].length === open[0].length)
    if (close === undefined) continue
    rest += line.slice(at, open.index)
    at = close.index + close[0].length
  }
  return rest + line.slice(at)
}

/** Whether everything between the fences is inside, and the last line ends it. */
export const isOneBlock = (block: string): boolean => {
  const [open = "", ...lines] = block.split("\n")
  const fence = /^(`{3,})(?:text|diff)$/.exec(open)?.[1]?.length ?? Infinity
  const isEnd = (line: string) => /^ {0,3}(`+)[ \t]*$/.exec(line)?.[1] !== undefined && line.trim().length >= fence
  return lines.findIndex(isEnd) === lines.length - 1
}

/** The lines of a page outside its fenced blocks, without their code spans. */
export const outsideBlocks = (page: string): ReadonlyArray<string> => {
  const outside: Array<string> = []
  let fence = ""
  for (const line of page.split("\n")) {
    const bar = /^(`{3,})(text|diff)?$/.exec(line)
    if (fence === "" && bar?.[2] !== undefined) fence = bar[1]!
    else if (fence === "") outside.push(outsideCode(line))
    else if (bar !== null && bar[2] === undefined && bar[1]!.length >= fence.length) fence = ""
  }
  if (fence !== "") outside.push("a block without an end")
  return outside
}
