import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findProgram } from "./find-program.ts";
import { findFreePort } from "./free-port.ts";

/** Postgres refuses to run as root. */
const NOBODY = 65_534;

/** The Postgres server beside the machine's `pg_dump`, which can dump only servers that are not newer than itself. */
export interface DumpServer {
  readonly bin: string;
  readonly major: string;
}

/** Returns the server, or why there is none. */
export function findDumpServer(): DumpServer | string {
  const dump = findProgram("pg_dump");
  if (dump === null) return "pg_dump is not on PATH";
  const major = /(\d+)/.exec(spawnSync(dump, ["--version"], { encoding: "utf8" }).stdout)?.[1] ?? "";
  const folders = [`/usr/lib/postgresql/${major}/bin`, path.dirname(dump)];
  const bin = folders.find((folder) =>
    ["initdb", "pg_ctl"].every((name) => existsSync(path.join(folder, name))),
  );
  return bin === undefined ? `there is no Postgres ${major} server beside pg_dump` : { bin, major };
}

/** Starts a new cluster of the server. `url` names a database on it. */
export async function startDumpServer({
  bin,
}: DumpServer): Promise<{ url: (name: string) => string; stop: () => void }> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-dump-server-"));
  const data = path.join(folder, "data");
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  if (isRoot) chownSync(folder, NOBODY, NOBODY);
  const port = await findFreePort();
  const run = (program: string, ...args: string[]) => {
    const { status, stderr } = spawnSync(path.join(bin, program), args, {
      ...user,
      cwd: folder,
      encoding: "utf8",
    });
    if (status !== 0) throw new Error(`${program} failed: ${stderr}`);
  };
  run(
    "initdb",
    "--pgdata",
    data,
    "--username",
    "longwatch",
    "--auth",
    "trust",
    "--encoding",
    "UTF8",
    "--no-sync",
  );
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
