import { escapeUnits } from "#lib/escape-units.ts";
import { cutText } from "#lib/plain-text.ts";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isAdvised } from "../../message/describe-alert.ts";
import { showsMembers } from "../../message/group-members.ts";
import { toSafeLinks } from "../../message/safe-link.ts";
import { takeFitting } from "../../message/take-fitting.ts";

/** Standard Webhooks asks for less than 20 KB. */
export const MAX_BODY_BYTES = 20_000;
/** Returns the body of a message whose members are short enough to fit. */
export const MEMBER_ROWS = 10_000;

interface Caps {
  readonly chars: number;
  readonly adviceChars: number;
  readonly rows: number;
  readonly points: number;
  /** Of those that the message speaks for; the others follow by name. */
  readonly members: number;
  readonly linkBytes: number;
}

/** Five of the longest, as long as hardly anything of them has to be escaped. */
const LINK_BYTES = 3_200;

/** From "everything" to what fits whatever the strings hold: at most 12 bytes per code point once escaped. */
const STEPS: readonly [Caps, Caps, ...Caps[]] = [
  {
    chars: 100_000,
    adviceChars: 100_000,
    rows: 1_000,
    points: 10_000,
    members: MEMBER_ROWS,
    linkBytes: MAX_BODY_BYTES,
  },
  {
    chars: 100_000,
    adviceChars: 100_000,
    rows: 1_000,
    points: 10_000,
    members: 80,
    linkBytes: MAX_BODY_BYTES,
  },
  { chars: 1_000, adviceChars: 6_000, rows: 10, points: 240, members: 60, linkBytes: LINK_BYTES },
  { chars: 300, adviceChars: 3_000, rows: 5, points: 120, members: 40, linkBytes: LINK_BYTES },
  { chars: 120, adviceChars: 1_000, rows: 3, points: 60, members: 5, linkBytes: LINK_BYTES },
  { chars: 20, adviceChars: 200, rows: 1, points: 30, members: 5, linkBytes: LINK_BYTES },
];
const MEMBER_ID_CHARS = 200;
/** Of the ids in one message that follows, in bytes; its own members take less than the rest. */
const PART_BYTES = MAX_BODY_BYTES - 1_000;
/** As many as follow on the other channels. */
const MOST_PARTS = 10;

function trim(message: AlertMessage, caps: Caps): AlertMessage {
  const cut = <Text extends string | null>(text: Text) =>
    (text === null ? text : cutText(text, caps.chars)) as Text;
  const cutRows = (rows: AlertMessage["top"]["ips"]) =>
    rows.slice(0, caps.rows).map((row) => ({ ...row, value: cut(row.value) }));
  const { top, advice } = message;
  return {
    // The keys stay whole at any price: a cut key would be another one.
    ...message,
    traits: undefined,
    silenceBy: undefined,
    ...(message.members === undefined ? {} : { members: message.members.slice(0, caps.members) }),
    ruleId: cut(message.ruleId),
    ruleTitle: cut(message.ruleTitle),
    headline: cut(message.headline),
    ...(message.details === undefined ? {} : { details: message.details.slice(0, caps.rows).map(cut) }),
    howToSilence: cut(message.howToSilence),
    sparkline: message.sparkline.slice(-caps.points),
    links: trimLinks(message.links, caps.linkBytes),
    top: {
      ips: cutRows(top.ips),
      asns: cutRows(top.asns),
      countries: cutRows(top.countries),
      paths: cutRows(top.paths),
      userAgents: cutRows(top.userAgents),
      ja4s: cutRows(top.ja4s),
    },
    advice: {
      state: isAdvised(message) ? advice.state : "unavailable",
      text:
        advice.text === null || !isAdvised(message)
          ? null
          : cutText(stripMarkdown(advice.text), caps.adviceChars),
      reason: cut(advice.reason),
    },
  };
}

/** Half a link leads nowhere: what has no room is left out. */
function trimLinks(links: AlertMessage["links"], bytes: number): AlertMessage["links"] {
  const safe = toSafeLinks(links).map(({ title, href }) => ({ title, url: href }));
  return takeFitting(safe, bytes, (link) => Buffer.byteLength(toHarmlessJson(link)));
}

/** JSON whose bytes are harmless in a log, a terminal or a page; its values are what they were. */
function toHarmlessJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}<>&]/gu, escapeUnits);
}

/** A page and, where it speaks for more rules than it has room for, what follows it. */
export interface WebhookBodies {
  readonly first: string;
  readonly following: readonly string[];
}

/**
 * The payload: `{type, timestamp, trimmed, data}` with the message as `data`. Below 20,000 bytes; where it would be more,
 * texts and lists are cut, `trimmed` says so, and the shape stays. Members that had to go follow by their ids alone, as
 * `alert.members`: their zone, their number and which part of how many it is; what would need more than ten of those
 * is counted in `left`.
 */
export function toWebhookBodies(message: AlertMessage, atMs: number): WebhookBodies {
  const timestamp = new Date(atMs).toISOString();
  let first = "";
  let shown = 0;
  const total = message.members?.length ?? 0;
  const [whole, fewerMembers, ...smaller] = STEPS;
  for (const [step, caps] of [whole, ...(total > 0 ? [fewerMembers] : []), ...smaller].entries()) {
    const data = trim(message, caps);
    shown = data.members?.length ?? 0;
    first = toHarmlessJson({ type: `alert.${message.state}`, timestamp, trimmed: step > 0, data });
    if (Buffer.byteLength(first) < MAX_BODY_BYTES) break;
  }
  if (!showsMembers(message)) return { first, following: [] };
  return { first, following: toFollowing(message, (message.members ?? []).slice(shown), timestamp) };
}

type Members = NonNullable<AlertMessage["members"]>;

function toFollowing(message: AlertMessage, rest: Members, timestamp: string): string[] {
  const { alertId, fingerprint, dedupeKey, transition, members = [] } = message;
  const parts = splitIds(rest);
  const kept = parts.slice(0, MOST_PARTS);
  const left = parts.slice(MOST_PARTS).reduce((sum, part) => sum + part.length, 0);
  return kept.map((part, index) => {
    const zones = [...Map.groupBy(part, ({ zoneId }) => zoneId)].map(([zoneId, ofZone]) => {
      return { zoneId, ruleIds: ofZone.map(({ ruleId }) => cutText(ruleId, MEMBER_ID_CHARS)) };
    });
    const which = { part: index + 1, parts: kept.length, total: members.length, left };
    const data = { alertId, fingerprint, dedupeKey, transition, ...which, zones };
    return toHarmlessJson({ type: "alert.members", timestamp, trimmed: false, data });
  });
}

/** As many ids as fit into a message each, whatever they hold. */
function splitIds(rest: Members): Members[] {
  const parts: Members[] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const [, ofZone] of Map.groupBy(rest, ({ zoneId }) => zoneId)) {
    // What a zone of its own costs besides its ids.
    used += 60;
    for (const member of ofZone) {
      const bytes = Buffer.byteLength(toHarmlessJson(cutText(member.ruleId, MEMBER_ID_CHARS))) + 1;
      if (used + bytes > PART_BYTES) {
        parts.push([]);
        used = 60;
      }
      parts.at(-1)?.push(member);
      used += bytes;
    }
  }
  return parts;
}
