import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import { describeReason } from "../../message/describe-alert.ts";
import { partMembers, showsMembers } from "../../message/group-members.ts";
import { FULL_CAPS, outlineAlert } from "../../message/outline-alert.ts";
import { toInert, toPlainLines } from "../../message/outline-lines.ts";

/**
 * Limits of the Alert API in characters; the limit of `details` covers all its keys and values (docs.opsgenie.com,
 * "Create Alert").
 */
export const OPSGENIE_LIMITS = {
  message: 130,
  alias: 512,
  description: 15_000,
  tag: 50,
  details: 8_000,
  entity: 512,
  source: 100,
  note: 25_000,
} as const;

export interface OpsgenieRequest {
  readonly method: "POST" | "PUT";
  /** Path below the API's base, with an escaped alias. */
  readonly path: string;
  readonly byAlias: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

const PRIORITIES: Readonly<Record<AlertMessage["severity"], string>> = {
  critical: "P1",
  error: "P2",
  warning: "P3",
  info: "P5",
};
const SOURCE = "Longwatch";
const measureInert = (text: string) => Array.from(toInert(text)).length;
export const MEMBER_ROWS = 10;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 150, chars: 4_000, measure: measureInert } as const;
/** Space for a note's title and for the number of rules that no note lists. */
const PART_ROOM = { chars: OPSGENIE_LIMITS.note - 500, lineChars: 2_000, measure: measureInert } as const;

/** Returns the full text of the alert; for advice, which becomes a note next to the description, only the advice. */
function toDescription(message: AlertMessage, maxChars: number): string {
  const elsewhere = showsMembers(message) ? { elsewhere: "in the notes" } : {};
  const view = message.reason === "advice" ? "transition" : "whole";
  const outline = outlineAlert(message, view, { ...FULL_CAPS, members: { ...MEMBERS, ...elsewhere } });
  // A cut link would not work, so only the text before the links is cut.
  const links = outline.links.map(({ title, href }) => `\n${toInert(title)}: ${href}`).join("");
  const text = toPlainLines(outline).map(toInert).join("\n");
  return `${cutText(text, maxChars - Array.from(links).length)}${links}`;
}

function createAlert(message: AlertMessage): OpsgenieRequest {
  const { subject, brief } = outlineAlert(message, "whole", {
    ...FULL_CAPS,
    title: OPSGENIE_LIMITS.entity,
  });
  const { severity, kind, zoneId, zoneName, zoneLabels = {}, ruleId, dedupeKey } = message;
  const rule = ruleId === null ? "" : toInert(toLine(ruleId, 200));
  const body = {
    message: cutText(toInert(brief === "" ? subject : brief), OPSGENIE_LIMITS.message),
    alias: dedupeKey,
    description: toDescription(message, OPSGENIE_LIMITS.description),
    entity: cutText(toInert(subject), OPSGENIE_LIMITS.entity),
    source: SOURCE,
    priority: PRIORITIES[severity],
    tags: ["longwatch", kind, ...(zoneId === null ? [] : [`zone-${zoneId}`])],
    details: {
      severity,
      ...Object.fromEntries(
        Object.entries(zoneLabels).map(([name, value]) => [`zone_${name}`, toInert(value)]),
      ),
      ...(zoneId === null ? {} : { zoneId: String(zoneId) }),
      ...(zoneName === undefined ? {} : { zoneName: toInert(zoneName) }),
      ...(rule === "" ? {} : { ruleId: rule }),
    },
  };
  return { method: "POST", path: "/v2/alerts", byAlias: false, body };
}

/** Returns the headline of an acknowledgement, which names the person. */
function noteWho(message: AlertMessage): string {
  const { headline } = outlineAlert(message, "transition");
  return message.reason === "acknowledged" ? toInert(headline) : describeReason(message);
}

/**
 * Returns the requests to the Alert API for a transition, in order; each may arrive twice. The alias identifies the
 * alert, so a late message about a resolved alert never opens another. Rules that do not fit into the alert follow as
 * notes. Where no request changes a priority, a note says that the alert is worse.
 */
export function toOpsgenieRequests(
  message: AlertMessage,
  { changesPriority = true }: { readonly changesPriority?: boolean } = {},
): OpsgenieRequest[] {
  const { state, reason, severity, dedupeKey } = message;
  const about = (method: "POST" | "PUT", verb: string, body: OpsgenieRequest["body"]): OpsgenieRequest => {
    return { method, path: `/v2/alerts/${encodeURIComponent(dedupeKey)}/${verb}`, byAlias: true, body };
  };
  const note = () => toDescription(message, OPSGENIE_LIMITS.note);
  if (state === "resolved" || isEnding(reason)) {
    return [about("POST", "close", { source: SOURCE, note: note() })];
  }
  if (reason === "advice") return [about("POST", "notes", { source: SOURCE, note: note() })];
  if (reason === "acknowledged" || (reason === "repeat" && state === "acknowledged")) {
    return [about("POST", "acknowledge", { source: SOURCE, note: noteWho(message) })];
  }
  // A create request for an open alert only raises its count; the priority has a request of its own.
  const raise = about("PUT", "priority", { priority: PRIORITIES[severity] });
  const rest = outlineAlert(message, "whole", { ...FULL_CAPS, members: MEMBERS }).members?.rest ?? [];
  const notes = partMembers(message, rest, PART_ROOM).map(({ title, lines }) =>
    about("POST", "notes", { source: SOURCE, note: [title, ...lines].map(toInert).join("\n") }),
  );
  // For the same reason new attackers and a new verdict are in a note.
  const isRise = reason === "worse" || reason === "again";
  const isNoted = reason === "join" || reason === "turned" || (isRise && !changesPriority);
  const named = isNoted ? [about("POST", "notes", { source: SOURCE, note: note() })] : [];
  const raised = isRise && changesPriority ? [raise] : [];
  return [createAlert(message), ...raised, ...named, ...notes];
}
