import { userInfo } from "node:os";

/** Returns the name of the operating system's user, for the audit trail. */
export function whoRuns(): string {
  try {
    return userInfo().username;
  } catch {
    // The user of a container may have no name.
    return "unknown";
  }
}
