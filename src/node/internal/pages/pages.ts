/**
 * The pages and what they are made of. Whatever fails here is told in the host's log, once, and tried again.
 */
import { Clock, Data, Effect, Semaphore } from "effect"
import type { Dispatcher } from "shiftboss"
import { attempt } from "../storage/disk.ts"
import type { Folder } from "../storage/folder.ts"
import { applyPage } from "./applyPage.ts"
import * as Fold from "./fold.ts"
import * as Shelf from "./shelf.ts"
import { restOf, statusPage } from "./statusPage.ts"

/** The whole is written so often; what moves by the second each second. */
export const wholeMillis = 15_000
/** More pages than these are not kept for the next time the whole is written … */
const mostWaiting = 16
/** … and more than these not at all while the disk takes none: they are made again from the log. */
const mostKept = 64

/** How pages are made; tests put failing ones in their place. */
export interface Renderers {
  readonly apply: typeof applyPage
  readonly status: typeof statusPage
  readonly rest: typeof restOf
}

export const renderers: Renderers = { apply: applyPage, status: statusPage, rest: restOf }

export interface Pages {
  readonly shelf: Shelf.Shelf
  readonly render: Renderers
  /** Held by what writes. */
  readonly writing: Semaphore.Semaphore
  /** The causes of what is not mended, by what they befell. */
  readonly failures: Map<string, string>
  state: Fold.State
  /** All of the log went into the state: until then a page would say less than is known. */
  isRead: boolean
  /** There is more to be said than is written. */
  isStale: boolean
  snapshot: Dispatcher.Snapshot | undefined
  /** The part of the status page that is made with the whole. */
  rest: string
  /** When the whole was last written, in epoch milliseconds. */
  wholeAt: number
  /** The folders were there. */
  isOpen: boolean
  /** Pages are wanting that are no longer in memory. */
  isLost: boolean
}

export const make = (folder: Folder, render: Renderers): Effect.Effect<Pages> =>
  Effect.map(Semaphore.make(1), (writing) => ({
    ...{ shelf: Shelf.make(folder), render, writing, failures: new Map(), state: Fold.initial(), isRead: false },
    ...{ isStale: true, snapshot: undefined, rest: "", wholeAt: -Infinity, isOpen: false, isLost: false }
  }))

/** A run of this process is under way. */
export const isRunning = ({ snapshot }: Pages): boolean => snapshot !== undefined && snapshot.run !== "none"

// -----------------------------------------------------------------------------
// telling
// -----------------------------------------------------------------------------

export const warn = (of: string, message: string): Effect.Effect<void> =>
  Effect.logWarning(`pages: ${of}: ${message} (the run goes on, and this is tried again)`)

/** Tells of a failure, unless one of the same cause has been told of: a full disk befalls every page. */
export const tell = (pages: Pages, of: string, { code, message }: Told): Effect.Effect<void> =>
  Effect.suspend(() => {
    const cause = code ?? message
    const isKnown = [...pages.failures.values()].includes(cause)
    pages.failures.set(of, cause)
    return isKnown ? Effect.void : warn(of, message)
  })

interface Told {
  readonly message: string
  /** Of the operating system. */
  readonly code?: string | undefined
}

/** It is mended: the next failure is told of again. */
export const told = (pages: Pages, of: string): boolean => pages.failures.delete(of)

// -----------------------------------------------------------------------------
// writing
// -----------------------------------------------------------------------------

/** Writes what moves by the second and, when it is time, the whole. */
export const write = (pages: Pages): Effect.Effect<void> =>
  pages.writing.withPermit(
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      if (!(yield* openShelf(pages))) return
      if (now - pages.wholeAt >= wholeMillis || now < pages.wholeAt) yield* writeWhole(pages, now)
      const { render, rest, shelf, snapshot, state } = pages
      yield* writePage(
        pages,
        "STATUS.md",
        () => render.status(state, snapshot, rest, now),
        (text) => Shelf.writeStatus(shelf, text)
      )
      if (pages.failures.size > 0) pages.isStale = true
      else if (pages.isLost) {
        // Not page by page: all of it is folded once more from the log.
        pages.isLost = false
        pages.isRead = false
      }
    })
  )

const openShelf = (pages: Pages): Effect.Effect<boolean> =>
  Effect.suspend(() => {
    if (pages.isOpen && Shelf.isOpen(pages.shelf)) return Effect.succeed(true)
    return Effect.matchEffect(
      attempt(() => Shelf.open(pages.shelf)),
      {
        onFailure: (error) => Effect.as(tell(pages, "their folder", error), false),
        onSuccess: () =>
          Effect.sync(() => {
            // It was there, and is again, without what was in it.
            if (pages.isOpen) pages.isLost = true
            pages.isOpen = true
            told(pages, "their folder")
            return true
          })
      }
    )
  })

const writeWhole = Effect.fnUntraced(function* (pages: Pages, now: number) {
  pages.wholeAt = now
  pages.isStale = false
  yield* writeApplies(pages, () => true)
  yield* Effect.matchEffect(
    attemptSync(() => pages.render.rest(pages.state, pages.snapshot)),
    {
      onFailure: (error) => tell(pages, "the rest of STATUS.md", error),
      onSuccess: (rest) =>
        Effect.sync(() => {
          pages.rest = rest
          told(pages, "the rest of STATUS.md")
        })
    }
  )
})

/** Writes pages, and forgets those that will not change any more. */
const writeApplies = Effect.fnUntraced(function* (pages: Pages, isMeant: typeof Fold.isFinal) {
  const { render, shelf, state } = pages
  for (const [name, page] of state.pages) {
    if (!isMeant(state, page)) continue
    if (page.isStale) {
      // Before it is made: what is folded in while it is written is not in it.
      page.isStale = false
      const isWritten = yield* writePage(
        pages,
        pageOf(name),
        () => render.apply(page),
        (text) => Shelf.writeApply(shelf, name, text)
      )
      if (!isWritten) page.isStale = true
    }
    if (!page.isStale && Fold.isFinal(state, page)) state.pages.delete(name)
  }
})

const pageOf = (apply: string): string => `applies/${apply}`

/** Keeps few pages in memory, however many applies a log tells of and however long a disk takes none. */
export const writeFinal = (pages: Pages): Effect.Effect<void> => {
  if (finalIn(pages).length <= mostWaiting) return Effect.void
  if (pages.failures.size > 0) return Effect.sync(() => dropOldest(pages))
  return pages.writing
    .withPermit(
      Effect.flatMap(openShelf(pages), (isOpen) => (isOpen ? writeApplies(pages, Fold.isFinal) : Effect.void))
    )
    .pipe(Effect.andThen(Effect.sync(() => dropOldest(pages))))
}

const finalIn = ({ state }: Pages): ReadonlyArray<string> => {
  if (state.pages.size <= mostWaiting) return []
  return [...state.pages].flatMap(([name, page]) => (Fold.isFinal(state, page) ? [name] : []))
}

const dropOldest = (pages: Pages): void => {
  for (const name of finalIn(pages).slice(0, -mostKept)) {
    pages.state.pages.delete(name)
    told(pages, pageOf(name))
    pages.isLost = true
  }
}

/** True when it is on the disk. */
const writePage = (
  pages: Pages,
  name: string,
  render: () => string,
  put: (text: string) => Promise<void>
): Effect.Effect<boolean> =>
  Effect.matchEffect(
    Effect.flatMap(attemptSync(render), (text) => attempt(() => put(text))),
    {
      onFailure: (error) => Effect.as(tell(pages, name, error), false),
      onSuccess: () =>
        Effect.sync(() => {
          told(pages, name)
          return true
        })
    }
  )

/** It threw. */
class RenderError extends Data.TaggedError("RenderError")<{ readonly message: string }> {}

const attemptSync = <A>(evaluate: () => A): Effect.Effect<A, RenderError> =>
  Effect.try({ try: evaluate, catch: (cause) => new RenderError({ message: String(cause) }) })
