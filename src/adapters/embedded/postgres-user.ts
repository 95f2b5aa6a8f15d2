import { execFileSync } from "node:child_process";

export interface PostgresUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Returns the user that runs Postgres, which refuses to run as root: null if this process is not root, else an existing
 * unprivileged user (initdb looks up its user, so an unused number does not work).
 * @throws {Error} when the machine knows neither `postgres` nor `nobody`.
 */
export function pickPostgresUser(): PostgresUser | null {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    try {
      const id = (flag: string) =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user: try the next.
    }
  }
  throw new Error(
    "Postgres cannot run as root, and this machine has neither a user postgres nor a user nobody; create one, or run Longwatch as another user",
  );
}

/** Returns whether the user can enter every folder on the path to `folder`. */
export function canReach(user: PostgresUser, folder: string): boolean {
  try {
    execFileSync("test", ["-x", folder], { uid: user.uid, gid: user.gid, cwd: "/", stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
