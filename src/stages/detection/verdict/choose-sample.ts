import { cleanText } from "#lib/clean-text.ts";
import type { SampleRequest } from "#model/verdict.ts";
import { holdsIdiom } from "./compute-features.ts";
import type { RequestFacts, VerdictEvidence } from "./evidence.ts";
import type { Said } from "./word-verdict.ts";

const MAX_URL_CHARS = 300;
const MAX_MATCHED_CHARS = 200;

/**
 * Returns one request as an example, its texts cut: the newest one with an idiom of attacks if the alert may be an attack or a scan, else
 * the newest one with the most common parameter. Returns the newest event if no record was read.
 */
export function chooseSample(
  { events, requests }: VerdictEvidence,
  { likeliest, rival, said }: Said,
): SampleRequest | null {
  const read = events.flatMap((event) => {
    const facts = requests.get(event.logId);
    return facts === undefined ? [] : [{ ...event, ...facts }];
  });
  const mayAttack = [likeliest, said === "unclear" ? rival : likeliest].some(
    (name) => name === "attack" || name === "scanner",
  );
  const suspicious = mayAttack ? read.find(holdsIdiom) : undefined;
  const common = mostCommon(read.map(({ parameter }) => parameter));
  const unread: RequestFacts = {
    method: "",
    parameter: null,
    matched: null,
    hasSession: null,
    hasOwnReferer: null,
  };
  const [newest] = events;
  const chosen =
    suspicious ??
    read.find(({ parameter }) => parameter === common) ??
    (newest === undefined ? undefined : { ...newest, ...unread });
  if (chosen === undefined) return null;
  const { at, logId, ip, method, url, ruleId, action, parameter, matched } = chosen;
  return {
    at,
    logId,
    ip,
    method,
    url: cleanText(url, MAX_URL_CHARS),
    ruleId,
    action,
    parameter,
    matched: matched === null ? null : cleanText(matched, MAX_MATCHED_CHARS),
  };
}

function mostCommon(names: readonly (string | null)[]): string | null {
  const counts = new Map<string, number>();
  for (const name of names) if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? null;
}
