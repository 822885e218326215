/**
 * What a child gets to see of the host's environment, and what of it must never be printed.
 */

/** What every program may need to find its way. Nothing of the host's own agent session, if it runs in one. */
const inherited = [
  ...["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE", "TERM"],
  ...["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"],
  ...["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"],
  ...["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SSH_AUTH_SOCK"]
]

type Environment = { readonly [name: string]: string }

/** The allow-listed part of `host`, and over it the given ones in their order. */
export const environmentOf = (
  host: { readonly [name: string]: string | undefined },
  names: ReadonlyArray<string>,
  ...added: ReadonlyArray<Environment | undefined>
): Environment => {
  const picked: Record<string, string> = {}
  for (const [name, value] of Object.entries(host)) {
    if (value !== undefined && (inherited.includes(name) || names.includes(name) || name.startsWith("LC_"))) {
      picked[name] = value
    }
  }
  return Object.assign(picked, ...added)
}

/** Shorter values are words, not secrets. */
const minSecret = 6
const secretName = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|COOKIE|PRIVATE|AUTHORIZATION/i
const secretNameNot = /^GIT_CONFIG_KEY_\d+$/

/** What is cut off before its secrets are out may begin inside one of them: in this many bytes, and no further. */
export const secretReach = 8192

type Form = readonly [form: RegExp, instead: string | ((found: string) => string)]

/**
 * Forms that are secrets wherever they stand. Each takes a time that grows with the length of the text and no faster,
 * whatever the text is: an agent decides what is in it, and the host does nothing else meanwhile.
 */
const forms: ReadonlyArray<Form> = [
  [/\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}/g, "[redacted]"],
  [/\bAIza[0-9A-Za-z_-]{30,}/g, "[redacted]"],
  [/\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9-]{10,})/g, "[redacted]"],
  // Looked for from the beginning of a word only: inside of a long one each place would be another beginning.
  [/(?<![\w-])[\w-]{11,}\.[\w-]{8,}\.[\w-]+/g, (found) => found.replace(/\beyJ[\w-]{8,}\..*/, "[redacted]")],
  [/\b(Bearer\s+)[\w.~+/-]{8,}=*/gi, "$1[redacted]"],
  [/(\b[a-z][a-z0-9+.-]{0,31}:\/\/)[^\s/@"']+@/gi, "$1[redacted]@"],
  [/([?&](?:[a-z_-]*(?:key|token|secret|password|signature))=)[^&\s"'#\\]+/gi, "$1[redacted]"]
]

/**
 * Takes secrets out of a text: the values given, as they are and as JSON and URLs write them, and what looks like one. Of a
 * value of several lines each line is one too, because texts are cut into lines.
 */
export const redactor = (env: Environment, secrets: ReadonlyArray<string> = []): ((text: string) => string) => {
  const values = Object.entries(env).flatMap(([name, value]) =>
    secretName.test(name) && !secretNameNot.test(name) ? [value] : []
  )
  const written = [...values, ...secrets]
    .flatMap((value) => [value, ...linesOf(value)])
    .filter((value) => value.length >= minSecret)
    .flatMap((value) => [value, JSON.stringify(value).slice(1, -1), encoded(value)])
  // The longest first: one secret may be the beginning of another.
  const known = [...new Set(written)].sort((a, b) => b.length - a.length)
  return (text) => {
    let clean = text
    for (const value of known) clean = clean.replaceAll(value, "[redacted]")
    for (const [form, instead] of forms) {
      clean = typeof instead === "string" ? clean.replace(form, instead) : clean.replace(form, instead)
    }
    return clean
  }
}

/** Shorter lines of a value, such as a bracket, turn up everywhere. */
const minLine = 12

const linesOf = (value: string): ReadonlyArray<string> =>
  value.includes("\n")
    ? value
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line.length >= minLine)
    : []

/** As URLs write it. Half a character has no such form. */
const encoded = (value: string): string => encodeURIComponent(Buffer.from(value).toString())
