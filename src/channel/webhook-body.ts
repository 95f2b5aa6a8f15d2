import type { AlertMessage } from "./alert-message.ts";
import { cutText } from "./plain-text.ts";

/** Standard Webhooks asks for less than 20 KB. */
export const MAX_BODY_BYTES = 20_000;

interface Caps {
  readonly chars: number;
  readonly adviceChars: number;
  readonly rows: number;
  readonly points: number;
}

/** From "everything" to what fits whatever the strings hold: at most 12 bytes per code point once escaped. */
const STEPS: readonly Caps[] = [
  { chars: 100_000, adviceChars: 100_000, rows: 1_000, points: 10_000 },
  { chars: 1_000, adviceChars: 6_000, rows: 10, points: 240 },
  { chars: 300, adviceChars: 3_000, rows: 5, points: 120 },
  { chars: 120, adviceChars: 1_000, rows: 3, points: 60 },
  { chars: 20, adviceChars: 200, rows: 1, points: 30 },
];

function trim(message: AlertMessage, caps: Caps): AlertMessage {
  const cut = <Text extends string | null>(text: Text) =>
    (text === null ? text : cutText(text, caps.chars)) as Text;
  const cutRows = (rows: AlertMessage["top"]["ips"]) =>
    rows.slice(0, caps.rows).map((row) => ({ ...row, value: cut(row.value) }));
  const { top, advice } = message;
  return {
    // The keys stay whole at any price: a cut key would be another one.
    ...message,
    ...(message.members === undefined ? {} : { members: message.members.slice(0, caps.points) }),
    ruleId: cut(message.ruleId),
    ruleTitle: cut(message.ruleTitle),
    headline: cut(message.headline),
    howToSilence: cut(message.howToSilence),
    sparkline: message.sparkline.slice(-caps.points),
    // Half a link leads nowhere: too long ones are left out.
    links: message.links
      .slice(0, caps.rows)
      .filter(({ url }) => url.length <= Math.max(caps.chars, 300))
      .map(({ label, url }) => ({ label: cut(label), url })),
    top: {
      ips: cutRows(top.ips),
      asns: cutRows(top.asns),
      countries: cutRows(top.countries),
      paths: cutRows(top.paths),
      userAgents: cutRows(top.userAgents),
      ja4s: cutRows(top.ja4s),
    },
    advice: {
      state: advice.state,
      text: advice.text === null ? null : cutText(advice.text, caps.adviceChars),
      reason: cut(advice.reason),
    },
  };
}

/** JSON whose bytes are harmless in a log, a terminal or a page; its values are what they were. */
function toHarmlessJson(value: unknown): string {
  return JSON.stringify(value).replace(/[\p{C}\p{Zl}\p{Zp}\p{DI}<>&]/gu, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }).join(""),
  );
}

/**
 * The payload: `{type, timestamp, trimmed, data}` with the message as `data`. Below 20,000 bytes; where it would be more,
 * texts and lists are cut, `trimmed` says so, and the shape stays.
 */
export function toWebhookBody(message: AlertMessage, atMs: number): string {
  let body = "";
  for (const [step, caps] of STEPS.entries()) {
    body = toHarmlessJson({
      type: `alert.${message.state}`,
      timestamp: new Date(atMs).toISOString(),
      trimmed: step > 0,
      data: trim(message, caps),
    });
    if (Buffer.byteLength(body) < MAX_BODY_BYTES) break;
  }
  return body;
}
