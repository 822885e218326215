/**
 * MurmurHash3 (x86, 32 bits; Austin Appleby, public domain) over the UTF-16 code units of a text, two to a block, low one
 * first. Hand-written because the order of rechecks has to stay the same in every runtime and every version.
 */
export const hash = (text: string, seed: number): number => {
  const last = text.length - 1
  let state = seed | 0
  let at = 0
  for (; at < last; at += 2) {
    state ^= scrambled(text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16))
    state = (state << 13) | (state >>> 19)
    state = (Math.imul(state, 5) + 0xe6546b64) | 0
  }
  if (at === last) state ^= scrambled(text.charCodeAt(at))
  state ^= 2 * text.length
  state = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35)
  return (state ^ (state >>> 16)) >>> 0
}

const scrambled = (block: number): number => {
  const mixed = Math.imul(block, 0xcc9e2d51)
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593)
}
