/**
 * CRC-32 (IEEE 802.3, as in zlib and gzip) of a text's UTF-8 bytes, taken without encoding it first: core has no
 * TextEncoder, and a copy of every line would cost more than the sum itself.
 */

const table = (() => {
  const table = new Int32Array(4 * 256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
    table[byte] = crc
  }
  for (let byte = 0; byte < 256; byte++) {
    let crc = table[byte]!
    for (let slice = 1; slice < 4; slice++) {
      crc = table[crc & 255]! ^ (crc >>> 8)
      table[slice * 256 + byte] = crc
    }
  }
  return table
})()

const add = (crc: number, byte: number): number => table[(crc ^ byte) & 255]! ^ (crc >>> 8)

const addCodePoint = (crc: number, code: number): number => {
  if (code < 0x80) return add(crc, code)
  if (code < 0x800) return add(add(crc, 0xc0 | (code >> 6)), 0x80 | (code & 63))
  if (code < 0x10000) {
    return add(add(add(crc, 0xe0 | (code >> 12)), 0x80 | ((code >> 6) & 63)), 0x80 | (code & 63))
  }
  const three = add(add(add(crc, 0xf0 | (code >> 18)), 0x80 | ((code >> 12) & 63)), 0x80 | ((code >> 6) & 63))
  return add(three, 0x80 | (code & 63))
}

const isSurrogate = (code: number) => code >= 0xd800 && code <= 0xdfff

/** The sum being taken: nothing here waits, and a pair for each call would be garbage by the million. */
let sum = -1

/** Adds ASCII four characters at a time ("slicing by 4"), and answers where it found anything else. */
const addAscii = (text: string, from: number): number => {
  const last = text.length - 4
  let crc = sum
  let at = from
  for (; at <= last; at += 4) {
    const a = text.charCodeAt(at)
    const b = text.charCodeAt(at + 1)
    const c = text.charCodeAt(at + 2)
    const d = text.charCodeAt(at + 3)
    if ((a | b | c | d) > 127) break
    crc ^= a | (b << 8) | (c << 16) | (d << 24)
    crc =
      table[768 + (crc & 255)]! ^
      table[512 + ((crc >>> 8) & 255)]! ^
      table[256 + ((crc >>> 16) & 255)]! ^
      table[crc >>> 24]!
  }
  sum = crc
  return at
}

/**
 * The sum of `text` from the character `from` on, as an unsigned 32-bit number; with the sum of a text before it, that of
 * both together. A lone surrogate counts as U+FFFD.
 */
export const crc32 = (text: string, from: number, before = 0): number => {
  sum = ~before
  let at = from
  while (at < text.length) {
    at = addAscii(text, at)
    // At most four before the next try, for nearly every line is ASCII but for a word or two.
    for (let count = 0; count < 4 && at < text.length; count++) {
      const code = text.codePointAt(at)!
      sum = addCodePoint(sum, isSurrogate(code) ? 0xfffd : code)
      at += code > 0xffff ? 2 : 1
    }
  }
  return ~sum >>> 0
}
