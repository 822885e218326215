/** A binary heap: the smallest key first, `push` and `pop` at logarithmic cost. */
export class Heap<A> {
  readonly #keys: Array<number> = []
  readonly #items: Array<A> = []

  get size(): number {
    return this.#keys.length
  }

  /** The smallest key; `Infinity` when there is none. */
  get least(): number {
    return this.#keys[0] ?? Infinity
  }

  peek(): A | undefined {
    return this.#items[0]
  }

  push(key: number, item: A): void {
    let at = this.#keys.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (this.#keys[parent]! <= key) break
      this.#set(at, this.#keys[parent]!, this.#items[parent]!)
      at = parent
    }
    this.#set(at, key, item)
  }

  pop(): A | undefined {
    const top = this.#items[0]
    const key = this.#keys.pop()
    const item = this.#items.pop()
    if (key === undefined || item === undefined || this.#keys.length === 0) return top
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#keys.length) break
      if (child + 1 < this.#keys.length && this.#keys[child + 1]! < this.#keys[child]!) child++
      if (this.#keys[child]! >= key) break
      this.#set(at, this.#keys[child]!, this.#items[child]!)
      at = child
    }
    this.#set(at, key, item)
    return top
  }

  clear(): void {
    this.#keys.length = 0
    this.#items.length = 0
  }

  #set(at: number, key: number, item: A): void {
    this.#keys[at] = key
    this.#items[at] = item
  }
}
