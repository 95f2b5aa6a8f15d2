import { userInfo } from "node:os";

/** For the audit trail. */
export function whoRuns(): string {
  try {
    return userInfo().username;
  } catch {
    // A container's user need not have a name.
    return "unknown";
  }
}
