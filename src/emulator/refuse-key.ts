import type { EmulatorContext } from "./emulator-context.ts";
import type { Operation } from "./operations.ts";
import { json, minimalError, problem, type Reply } from "./reply.ts";
import { containerProblem } from "./routes/container-error.ts";

const DENIED = { Message: "Authorization has been denied for this request." };

/**
 * Returns whether the key is one of the account's. Every key may use every operation, because the permissions of
 * roles are not documented.
 */
export function isKnownKey(context: EmulatorContext, key: string | undefined): boolean {
  return key !== undefined && context.resources.apiKeys.some((known) => known.Key === key);
}

/** Returns how an area of the platform answers a missing or wrong key. */
export function refuseKey(
  context: EmulatorContext,
  operation: Operation,
  params: Readonly<Record<string, string>>,
): Reply {
  const denied = () => json(401, DENIED);
  const container = () =>
    containerProblem(401, "The access key is missing or not valid.", params["appId"] ?? "");
  const minimal = () => minimalError(401);
  const bare = () => problem(401);
  const refusals: Record<Operation, () => Reply> = {
    "list-api-keys": () => json(Number(context.switches.apiKeyRefusal), DENIED),
    "set-hostname-key-type": denied,
    "check-dns-zone": denied,
    "add-container": container,
    "update-application": container,
    "delete-volume-instances": container,
    "recommend-rule": minimal,
    "rule-metrics": minimal,
    "search-event-logs": bare,
    "export-event-logs": bare,
    "list-event-logs": bare,
  };
  return refusals[operation]();
}
