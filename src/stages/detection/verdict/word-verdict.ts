import { formatDecimal, formatDuration, formatShare, formatWhole, many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { VERDICT_CLASSES, type VerdictClass, type VerdictFeature, type VerdictWord } from "#model/kinds.ts";
import { countThrough, LOOK_AFTER_MS, type StoredVerdict } from "#model/verdict.ts";
import { DAYS_OF_ASN } from "./compute-features.ts";
import type { VerdictEvidence } from "./evidence.ts";

type Counts = StoredVerdict["counts"];
/** Class that is said, and the class that the likeliest one is compared with. */
export type Said = Pick<StoredVerdict, "said" | "likeliest" | "isLasting"> & { readonly rival: VerdictClass };

/** More addresses than this are not blocked one by one. */
const MOST_BLOCKED = 12;

/** Returns the verdict in a few words. Whether a rule misfires is only certain once it lasted. */
export function titleOf({ said, likeliest, rival, isLasting }: Said, { look }: VerdictEvidence): string {
  const two = VERDICT_CLASSES.filter((name) => name === likeliest || name === rival);
  const titles: Record<VerdictWord, string> = {
    attack: "Probably an attack",
    misfire: {
      first: "May be a misfire",
      "half-hour": "Looks like a misfire",
      "six-hours": isLasting ? "Misfire" : "Looked like a misfire",
      day: isLasting ? "Misfire" : "Looked like a misfire",
    }[look],
    scanner: "Scanner",
    "broken-client": "Broken client",
    crawler: "Verified crawler",
    unclear: `Unclear: ${two.join(" or ").replace("broken-client", "broken client")}`,
  };
  return titles[said];
}

/** Returns each number of the verdict as a sentence with its counts. */
export function describeReasons(
  value: (feature: VerdictFeature) => number,
  { addresses, events, paths, records }: Counts,
): Readonly<Record<VerdictFeature, string>> {
  const ofAddresses = (share: number) => countOf(Math.round(share * addresses), addresses);
  const ofEvents = (feature: VerdictFeature) => `${sayShare(value(feature))} ${many(events, "event")}`;
  const read =
    records > 0
      ? `${many(records, "request")} that ${records === 1 ? "was" : "were"} read`
      : "the URLs with a query";
  const ofRequests = (feature: VerdictFeature) => `${sayShare(value(feature))} ${read}`;
  return {
    spread: `${many(addresses, "address sends", "addresses send")} the events.`,
    usualAsn: `${ofAddresses(value("usualAsn"))} in a network that is usual here.`,
    usualJa4: `${ofEvents("usualJa4")} have a TLS fingerprint (JA4) that is usual here.`,
    dirty: `${ofAddresses(value("dirty"))} triggering three or more rules on other paths within 24 hours.`,
    rulesPerIp: `An address triggers ${formatDecimal(2 ** (4 * value("rulesPerIp")))} rules within 24 hours on average.`,
    knownPath: `${ofEvents("knownPath")} are on paths that are usual here.`,
    onePath: `${ofEvents("onePath")} are on ${paths > 1 ? `the largest of ${many(paths, "path")}` : "one path"}.`,
    session: `${ofRequests("session")} carry a session cookie or credentials.`,
    referer: `${ofRequests("referer")} come from a page of their own host.`,
    idiom: `${ofRequests("idiom")} hold an idiom of attacks.`,
    repeat: `${ofEvents("repeat")} repeat the same URL from the same address.`,
    botUa: `${ofEvents("botUa")} name a bot as their user agent.`,
  };
}

function sayShare(share: number): string {
  if (share === 0) return "None of";
  return share === 1 ? "All of" : `${formatShare(share)} of`;
}

function countOf(found: number, addresses: number): string {
  if (addresses === 1) return `The only address is${found === 0 ? " not" : ""}`;
  if (found === 0) return `None of the ${formatWhole(addresses)} addresses is`;
  if (found === addresses) return `All ${formatWhole(addresses)} addresses are`;
  return `${formatWhole(found)} of ${formatWhole(addresses)} addresses ${found === 1 ? "is" : "are"}`;
}

/** Returns who sends the events, new or known. */
export function describeSenders({ events, usual }: VerdictEvidence, { addresses, networks }: Counts): string {
  if (addresses === 0) return "The addresses are not known.";
  const senders = many(addresses, "address", "addresses");
  if (networks === 0) return `${senders}; their networks are not known.`;
  const { size } = new Set(events.flatMap(({ asn }) => (usual.asns.has(asn) ? [asn] : [])));
  const known = `${size === 0 ? "none" : formatWhole(size)} of the networks ${size > 1 ? "are" : "is"} usual here`;
  const isKnown = usual.days >= DAYS_OF_ASN;
  return `${senders} of ${many(networks, "network")}; ${isKnown ? known : "which networks are usual here is not known yet"}.`;
}

/** Returns the next step of a person. Its figures are of the window. */
export function describeNextStep(
  { said, isLasting }: Said,
  { look, judgedAt, since, openedAt, ruleId }: VerdictEvidence,
  { addresses, events, blocked, logged, other }: Counts,
): string {
  const through = countThrough({ logged, other });
  const ofEvents = `of ${many(events, "event")} in ${formatDuration(judgedAt - since)}`;
  const passed = `${through === 0 ? "None" : formatWhole(through)} ${ofEvents} got through.`;
  const stopped = `${blocked === 0 ? "None" : formatWhole(blocked)} ${ofEvents} ${blocked > 1 ? "were" : "was"} blocked.`;
  const each = addresses > 1 ? `${addresses} addresses` : "address";
  const block = `Block ${addresses > MOST_BLOCKED ? "what the addresses have in common, such as a network or JA4" : `the ${each}`}`;
  const waits = look === "first" || look === "half-hour";
  const later = openedAt + LOOK_AFTER_MS["six-hours"];
  const steps: Record<VerdictWord, string> = {
    attack:
      through === 0
        ? `${passed} Check what else the addresses requested.`
        : `${passed} ${block}${ruleId === null ? "" : `, or switch rule ${ruleId} to blocking`}.`,
    misfire: waits
      ? `${stopped} Look at the sample and mark the alert, or wait for the look at ${showTime(later - (later % MINUTE_MS))} UTC.`
      : `${stopped} ${isLasting ? "Look at the exclusion and at what it would have silenced." : "It is over. Look at the sample and mark the alert."}`,
    scanner: `${passed} ${through === 0 ? "Mark the alert" : `Check what the site answered. ${block}`}.`,
    "broken-client": `${stopped} Find the owner of the client by the sample, and mark the alert.`,
    crawler: `${stopped} A blocked search engine costs visits. Look at the sample as for a misfire.`,
    unclear: `${passed} Look first at the sample request, then at its path and at who sends the events. Mark the alert.`,
  };
  return steps[said];
}
