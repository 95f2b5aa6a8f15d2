import { EdgeError, type EdgeErrorCode } from "../edge/edge-error.ts";
import { escapeText } from "../edge/escape-text.ts";
import { toError } from "../errors.ts";

/** What the person who runs the service can do about it. */
const REMEDIES: Partial<Record<EdgeErrorCode, string>> = {
  EDGE_UNAUTHORIZED: "check EDGE_API_KEY",
  EDGE_FORBIDDEN: "check what the key of EDGE_API_KEY may do",
  EDGE_NOT_FOUND: "check EDGE_API_URL and the ids (EDGE_SHIELD_ZONES)",
  EDGE_PLAN: "the plan of this account does not include event logs",
  EDGE_NETWORK: "check EDGE_API_URL, and that it can be reached from here",
  EDGE_TIMEOUT: "check EDGE_API_URL, and that it can be reached from here",
  EDGE_MALFORMED: "check EDGE_API_URL: this is not how the platform answers",
};

/** What to look at after this failure; null where there is nothing to say. `typed`: a person typed the ids of the call. */
export function findRemedy({ code }: EdgeError, { typed = false } = {}): string | null {
  if (typed && code === "EDGE_NOT_FOUND") return "check the ids that were typed, and EDGE_API_URL";
  return REMEDIES[code] ?? null;
}

/** A failed call in one line, with what to look at. */
export function describePlatformFailure(thrown: unknown): string {
  const error = toError(thrown);
  if (!(error instanceof EdgeError)) return escapeText(error.message);
  const remedy = findRemedy(error);
  return `${error.code} ${error.message}${remedy === null ? "" : `: ${remedy}`}`;
}
