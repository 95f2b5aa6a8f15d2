/** The words of a verdict and the requests that show it. */
import { formatDecimal, formatDuration, formatShare, formatWhole, many, showTime } from "#lib/format.ts";
import { cleanText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { isNetworkText } from "#model/ip-address.ts";
import { VERDICT_CLASSES, type VerdictClass, type VerdictFeature, type VerdictWord } from "#model/kinds.ts";
import { holdsIdiom } from "#model/request-facts.ts";
import { countThrough, type SampleRequest, type StoredVerdict, VERDICT_AFTER_MS } from "#model/verdict.ts";
import { DAYS_OF_ASN } from "./compute-features.ts";
import type { VerdictEvidence } from "./evidence.ts";
import { mostFrequent, type VerdictRequest } from "./requests.ts";

/** The counts of a window, of its requests. */
export type RequestCounts = StoredVerdict["counts"] & { readonly requests: number };
/** Class that is said, and the class that the likeliest one is compared with. */
type Said = Pick<StoredVerdict, "said" | "likeliest" | "isLasting"> & { readonly rival: VerdictClass };

/** More addresses than this are not blocked one by one. */
const MOST_BLOCKED = 12;

/** Returns the verdict in a few words. Whether a rule misfires is only certain once it lasted. */
export function titleOf(
  { said, likeliest, rival, isLasting }: Said,
  { look, crawler }: VerdictEvidence,
): string {
  const two = VERDICT_CLASSES.filter((name) => name === likeliest || name === rival);
  const titles: Record<VerdictWord, string> = {
    attack: "Probably an attack",
    misfire: {
      first: "May be a misfire",
      minute: "May be a misfire",
      "five-minutes": "Looks like a misfire",
      "half-hour": "Looks like a misfire",
      "six-hours": isLasting ? "Misfire" : "Looked like a misfire",
      day: isLasting ? "Misfire" : "Looked like a misfire",
    }[look],
    scanner: "Scanner",
    "broken-client": "Broken client",
    crawler: crawler === null ? "Probably a crawler" : "Verified crawler",
    unclear: `Unclear: ${two.join(" or ").replace("broken-client", "broken client")}`,
  };
  return titles[said];
}

/** Returns each number of the verdict as a sentence with its counts. */
export function describeReasons(
  value: (feature: VerdictFeature) => number,
  { addresses, requests, paths, records }: RequestCounts,
): Readonly<Record<VerdictFeature, string>> {
  const ofAddresses = (share: number) => countOf(Math.round(share * addresses), addresses);
  const ofAll = (feature: VerdictFeature) => `${describeShare(value(feature))} ${many(requests, "request")}`;
  const read = records > 0 ? `${many(records, "request")} with a record` : "the URLs with a query";
  const ofRead = (feature: VerdictFeature) => `${describeShare(value(feature))} ${read}`;
  return {
    spread: `${many(addresses, "address sends", "addresses send")} the requests.`,
    usualAsn: `${ofAddresses(value("usualAsn"))} in a network that is usual here.`,
    oneJa4:
      value("oneJa4") === 1
        ? `Nearly all requests have one TLS fingerprint (JA4), as those of one tool do.`
        : `The requests have several TLS fingerprints (JA4), as those of visitors do.`,
    usualJa4: `${ofAll("usualJa4")} have a TLS fingerprint (JA4) that is usual here.`,
    dirty: `${ofAddresses(value("dirty"))} triggering three or more rules on other paths within 24 hours.`,
    rulesPerIp: `An address triggers ${formatDecimal(2 ** (4 * value("rulesPerIp")))} rules within 24 hours on average.`,
    protocol: `${ofAddresses(value("protocol"))} triggering only rules that read how a client builds its requests.`,
    knownPath: `${ofAll("knownPath")} are on paths that are usual here.`,
    onePath: `${ofAll("onePath")} are on ${paths > 1 ? `the largest of ${many(paths, "path")}` : "one path"}.`,
    session: `${ofRead("session")} carry a session cookie or credentials.`,
    referer: `${ofRead("referer")} come from a page of their own host.`,
    idiom: `${ofRead("idiom")} hold an idiom of attacks.`,
    repeat: `${ofAll("repeat")} repeat the same text on the same path from the same address.`,
    botUa: `${ofAll("botUa")} name a bot as their user agent.`,
    program: `${ofAll("program")} are of programs, not of browsers, by their user agent.`,
    tool: `${ofRead("tool")} are of a tool that searches sites for weaknesses.`,
  };
}

function describeShare(share: number): string {
  if (share === 0) return "None of";
  if (share === 1) return "All of";
  return share >= 0.995 ? "Almost all of" : `${formatShare(share)} of`;
}

function countOf(found: number, addresses: number): string {
  if (addresses === 1) return `The only address is${found === 0 ? " not" : ""}`;
  if (found === 0) return `None of the ${formatWhole(addresses)} addresses is`;
  if (found === addresses) return `All ${formatWhole(addresses)} addresses are`;
  return `${formatWhole(found)} of ${formatWhole(addresses)} addresses ${found === 1 ? "is" : "are"}`;
}

/** Returns who sends the requests, new or known. */
export function describeSenders(
  { usual }: VerdictEvidence,
  requests: readonly VerdictRequest[],
  { addresses, networks }: RequestCounts,
): string {
  const of = new Set(requests.flatMap(({ asn }) => (asn === "" ? [] : [asn])));
  if (addresses === 0 && of.size > 0) return `The addresses are not known; ${many(of.size, "network")}.`;
  if (addresses === 0) return "The addresses are not known.";
  const senders = many(addresses, "address", "addresses");
  if (networks === 0) return `${senders}; their networks are not known.`;
  const size = [...of].filter((asn) => usual.asns.has(asn)).length;
  const known = `${size === 0 ? "none" : formatWhole(size)} of the networks ${size > 1 ? "are" : "is"} usual here`;
  const isKnown = usual.days >= DAYS_OF_ASN;
  return `${senders} of ${many(networks, "network")}; ${isKnown ? known : "which networks are usual here is not known yet"}.`;
}

/** Returns the next step of a person. Its figures are of the window. */
export function describeNextStep(
  { said, isLasting }: Said,
  { look, judgedAt, since, openedAt, ruleId }: VerdictEvidence,
  requests: readonly VerdictRequest[],
  { blocked, challenged, logged, other }: RequestCounts,
): string {
  const through = countThrough({ logged });
  const ofAll = `of ${many(requests.length, "request")} in ${formatDuration(judgedAt - since)}`;
  const unknown = other === 0 ? "" : ` The fate of ${formatWhole(other)} is not known.`;
  const passed = `${through === 0 ? "None" : formatWhole(through)} ${ofAll} got through.${unknown}`;
  const stops = blocked + challenged;
  const stopped = `${stops === 0 ? "None" : formatWhole(stops)} ${ofAll} ${stops > 1 ? "were" : "was"} stopped.${unknown}`;
  const block = describeBlock(requests);
  const waits = VERDICT_AFTER_MS[look] < VERDICT_AFTER_MS["six-hours"];
  const later = openedAt + VERDICT_AFTER_MS["six-hours"];
  const steps: Record<VerdictWord, string> = {
    attack:
      through === 0 && other === 0
        ? `${passed} Check what else the addresses requested.`
        : `${passed}${block === "" ? "" : ` ${block}`}${ruleId === null ? "" : `${block === "" ? " Switch" : " Or switch"} rule ${ruleId} to blocking.`}`,
    misfire: waits
      ? `${stopped} Look at the sample. If visitors sent it, ${ruleId === null ? "" : "try the exclusion and "}mark the alert. The verdict at ${showTime(later - (later % MINUTE_MS))} UTC says whether it lasts.`
      : `${stopped} ${isLasting ? "Try the exclusion: it shows what it would have silenced." : "It is over. Look at the sample and mark the alert."}`,
    scanner: `${passed} ${through === 0 ? "Mark the alert." : `Check what the site answered.${block === "" ? "" : ` ${block}`}`}`,
    "broken-client": `${stopped} Find the owner of the client by the sample, and mark the alert.`,
    crawler: `${stopped} A blocked search engine costs visits. Look at the sample as for a misfire.`,
    unclear: `${passed} Look first at the sample request, then at its path and at who sends the requests. Mark the alert.`,
  };
  return steps[said];
}

/** Returns whom to block. Names nobody who may be a visitor: with a session or from a page of the site, and without an idiom. */
function describeBlock(requests: readonly VerdictRequest[]): string {
  const senders = Map.groupBy(
    requests.filter(({ address }) => address !== ""),
    ({ address }) => address,
  );
  const hostile = [...senders].flatMap(([address, sent]) => {
    const isVisitor =
      sent.some(({ facts }) => facts.hasSession === true || facts.hasOwnReferer === true) &&
      !sent.some(({ facts }) => facts.hasIdiom === true || facts.isTool === true);
    // An IPv6 sender is its network of 64 bits.
    const isOne = address.endsWith("::/64") || !isNetworkText(address);
    return isVisitor || !isOne ? [] : [address];
  });
  if (hostile.length === 0) return "";
  if (hostile.length > MOST_BLOCKED)
    return "Block what the addresses have in common, such as a network or JA4.";
  return `Block the ${hostile.length > 1 ? `${hostile.length} addresses` : "address"}.`;
}

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
