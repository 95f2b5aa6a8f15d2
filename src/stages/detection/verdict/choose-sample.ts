import { cleanText } from "#lib/text.ts";
import { holdsIdiom } from "#model/request-facts.ts";
import type { SampleRequest } from "#model/verdict.ts";
import { mostFrequent } from "./counting.ts";
import type { VerdictEvidence } from "./evidence.ts";
import type { Said } from "./word-verdict.ts";

const MAX_URL_CHARS = 300;
const MAX_MATCHED_CHARS = 200;

/**
 * Returns one request as an example, its texts cut: the newest one with an idiom if the alert may be an attack or a scan,
 * else the newest one with the most common parameter. Without records it is the newest event.
 */
export function chooseSample(
  { events, requests }: VerdictEvidence,
  { likeliest, rival, said }: Said,
): SampleRequest | null {
  const read = events.flatMap((event) => {
    const facts = requests.get(event.logId);
    return facts === undefined ? [] : [{ ...event, ...facts }];
  });
  const classes = said === "unclear" ? [likeliest, rival] : [likeliest];
  const isSuspicious = classes.includes("attack") || classes.includes("scanner");
  const [common = ""] = mostFrequent(read.map(({ parameter }) => parameter ?? ""));
  const [newest] = events.map((event) => ({ ...event, method: "", parameter: null, matched: null }));
  const chosen =
    (isSuspicious ? read.find(holdsIdiom) : undefined) ??
    read.find(({ parameter }) => (parameter ?? "") === common) ??
    newest;
  if (chosen === undefined) return null;
  return cutSample(chosen);
}

/** Returns a request as a sample, its texts cut. */
export function cutSample(request: SampleRequest): SampleRequest {
  const { at, logId, ip, method, ruleId, action, parameter } = request;
  const url = cleanText(request.url, MAX_URL_CHARS);
  const matched = request.matched === null ? null : cleanText(request.matched, MAX_MATCHED_CHARS);
  return { at, logId, ip, method, url, ruleId, action, parameter, matched };
}
