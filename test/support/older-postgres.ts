import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findProgram } from "./find-program.ts";
import { findFreePort } from "./free-port.ts";

/** Postgres refuses to run as root. */
const NOBODY = 65_534;
const VERSIONS = "/usr/lib/postgresql";
const OLDEST_MAJOR = 15;

/** A Postgres server of the machine that is older than the embedded one. */
export interface OlderServer {
  readonly bin: string;
  readonly major: number;
}

/** Returns the oldest server of Debian's packages that Longwatch supports, or why there is none. */
export function findOlderServer(): OlderServer | string {
  if (findProgram("pg_ctlcluster") === null) return "pg_ctlcluster is not on PATH";
  const majors = existsSync(VERSIONS) ? readdirSync(VERSIONS).map(Number) : [];
  const usable = majors.filter(
    (major) => major >= OLDEST_MAJOR && existsSync(path.join(VERSIONS, String(major), "bin", "initdb")),
  );
  const major = Math.min(...usable);
  if (usable.length === 0) return `there is no Postgres ${OLDEST_MAJOR} or newer in ${VERSIONS}`;
  return { bin: path.join(VERSIONS, String(major), "bin"), major };
}

/** Starts a new cluster of the server in a temporary folder. `url` names a database on it. */
export async function startOlderServer({
  bin,
}: OlderServer): Promise<{ url: (name: string) => string; stop: () => void }> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-older-postgres-"));
  const data = path.join(folder, "data");
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  const port = await findFreePort();
  const run = (program: string, ...args: string[]) => {
    // The server keeps pg_ctl's output open, and a pipe would be waited for until the server ends.
    const options = { ...user, cwd: folder, stdio: "ignore" } as const;
    const { status } = spawnSync(path.join(bin, program), args, options);
    if (status !== 0) throw new Error(`${program} ended with ${status}: run it in ${folder}`);
  };
  const auth = ["--username", "longwatch", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8"];
  run("initdb", "--pgdata", data, ...auth, "--no-sync");
  const options = `-c listen_addresses=127.0.0.1 -c port=${port} -c unix_socket_directories=${folder} -c fsync=off`;
  run("pg_ctl", "start", "--wait", "--pgdata", data, "--log", path.join(folder, "log"), "--options", options);
  return {
    url: (name) => `postgres://longwatch@127.0.0.1:${port}/${name}`,
    stop: () => {
      run("pg_ctl", "stop", "--pgdata", data, "--mode", "immediate");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
