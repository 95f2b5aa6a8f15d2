import { isAdvised } from "#delivery/rules/message/describe-alert.ts";
import { toSafeLinks } from "#delivery/rules/message/document.ts";
import { showsMembers } from "#delivery/rules/message/group-members.ts";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { cutText, escapeUnits } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";

/** Standard Webhooks asks for less than 20 KB. */
export const MAX_BODY_BYTES = 20_000;
/** Number of members in a body that is not cut. */
export const MEMBER_ROWS = 10_000;

interface Caps {
  readonly chars: number;
  readonly adviceChars: number;
  readonly rows: number;
  readonly points: number;
  /** Maximum number of members with all their facts. The others follow by id. */
  readonly members: number;
  readonly linkBytes: number;
}

/** Enough for five links of maximum length in which hardly anything has to be escaped. */
const LINK_BYTES = 3_200;

/** Caps to try in order. The first cut nothing; the last fit for every message (12 bytes per code point). */
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
/** Space for the ids in one further message, in bytes. The message's other members take less than the rest. */
const PART_BYTES = MAX_BODY_BYTES - 1_000;
/** Maximum number of further messages, as on the other channels. */
const MOST_PARTS = 10;

function trim(message: AlertMessage, caps: Caps): AlertMessage {
  const { ruleId, ruleTitle, headline, howToSilence, verdict, marked, disagreement, unknownActions } =
    message;
  const { details, members, exclusion, advice } = message;
  // No word of a closed list is as long as the shortest cut.
  const cut = <Value>(value: Value): Value =>
    JSON.parse(JSON.stringify(value, (_, one) => (typeof one === "string" ? cutText(one, caps.chars) : one)));
  const top = Object.entries(message.top).map(([key, rows]) => [key, rows.slice(0, caps.rows)]);
  const text = isAdvised(message) && advice.text !== null ? stripMarkdown(advice.text) : null;
  return {
    // The keys stay whole at any price: a cut key would be another one.
    ...message,
    ...cut({ ruleId, ruleTitle, headline, howToSilence, verdict, marked, disagreement, unknownActions }),
    ...cut({ details: details?.slice(0, caps.rows), top: Object.fromEntries(top) as AlertMessage["top"] }),
    traits: undefined,
    silenceBy: undefined,
    members: members?.slice(0, caps.members),
    // A cut command would be another one.
    exclusion: exclusion && trimExclusion(exclusion, caps.chars),
    sparkline: message.sparkline.slice(-caps.points),
    links: trimLinks(message.links, caps.linkBytes),
    advice: {
      state: isAdvised(message) ? advice.state : "unavailable",
      text: text === null ? null : cutText(text, caps.adviceChars),
      reason: cut(advice.reason),
    },
  };
}

function trimExclusion(
  { command, reason }: NonNullable<AlertMessage["exclusion"]>,
  chars: number,
): NonNullable<AlertMessage["exclusion"]> {
  const isWhole = command === null || command.length <= chars;
  return isWhole
    ? { command, reason: reason === null ? null : cutText(reason, chars) }
    : { command: null, reason: cutText("Shortened. The alert's page has the command.", chars) };
}

/** Returns the links that fit. A link is never cut. */
function trimLinks(links: AlertMessage["links"], bytes: number): AlertMessage["links"] {
  let left = bytes;
  return toSafeLinks(links).flatMap(({ title, href }) => {
    const cost = Buffer.byteLength(toHarmlessJson({ title, url: href }));
    if (cost > left) return [];
    left -= cost;
    return [{ title, url: href }];
  });
}

/** Returns JSON whose bytes are harmless in a log, a terminal or a page. Its values are unchanged. */
function toHarmlessJson(value: unknown): string {
  return escapeHarmful(JSON.stringify(value));
}

function escapeHarmful(json: string): string {
  return json.replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}<>&]/gu, escapeUnits);
}

/** Makes a body with each of the caps, in order. Returns the first one that has fewer than 20,000 bytes, else the last one. */
export function toFittingJson<Caps>(
  steps: readonly Caps[],
  makeBody: (caps: Caps, step: number) => unknown,
): string {
  let json = "";
  for (const [step, caps] of steps.entries()) {
    json = JSON.stringify(makeBody(caps, step));
    // An escape is longer than what it replaces, so JSON that is too long need not be escaped.
    if (Buffer.byteLength(json) >= MAX_BODY_BYTES) continue;
    json = escapeHarmful(json);
    if (Buffer.byteLength(json) < MAX_BODY_BYTES) return json;
  }
  return escapeHarmful(json);
}

/** A message, and further messages with the members that do not fit into it. */
export interface WebhookBodies {
  readonly first: string;
  readonly following: readonly string[];
}

/**
 * Returns the payload `{type, timestamp, trimmed, data}` with the message as `data`. It has fewer than 20,000 bytes: if
 * necessary, texts and lists are cut and `trimmed` is true, but the shape stays. Members that were cut follow by their
 * ids, in messages of the type `alert.members`. Each of these contains its zones, its number and the number of such
 * messages. There are at most ten; `left` counts the members after those.
 */
export function toWebhookBodies(message: AlertMessage, atMs: number): WebhookBodies {
  const timestamp = new Date(atMs).toISOString();
  let shown = 0;
  const total = message.members?.length ?? 0;
  const [whole, fewerMembers, ...smaller] = STEPS;
  const steps = [whole, ...(total > 0 ? [fewerMembers] : []), ...smaller];
  const first = toFittingJson(steps, (caps, step) => {
    const data = trim(message, caps);
    shown = data.members?.length ?? 0;
    return { type: `alert.${message.state}`, timestamp, trimmed: step > 0, data };
  });
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

/** Splits the ids into parts that fit into one message each, whatever the ids contain. */
function splitIds(rest: Members): Members[] {
  const parts: Members[] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const [, ofZone] of Map.groupBy(rest, ({ zoneId }) => zoneId)) {
    // A zone takes this space besides its ids.
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
