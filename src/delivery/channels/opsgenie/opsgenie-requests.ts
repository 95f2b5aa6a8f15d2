import { cutText, toLine } from "../../../lib/plain-text.ts";
import type { AlertMessage } from "../../../model/alert-message.ts";
import { describeReason } from "../../message/describe-alert.ts";
import { partMembers, showsMembers } from "../../message/group-members.ts";
import { FULL_CAPS, outlineAlert } from "../../message/outline-alert.ts";
import { toInert, toPlainLines } from "../../message/outline-lines.ts";

/** Of the Alert API, in characters; `details` over all its keys and values (docs.opsgenie.com, "Create Alert"). */
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
  /** Below the API's base, its alias escaped. */
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
/** A note, with room for its title and for how many are in none. */
const PART_ROOM = { chars: OPSGENIE_LIMITS.note - 500, lineChars: 2_000, measure: measureInert } as const;

/** All that is known; of advice, which is a note beside the description, the advice. */
function toDescription(message: AlertMessage, maxChars: number): string {
  const elsewhere = showsMembers(message) ? { elsewhere: "in the notes" } : {};
  const view = message.reason === "advice" ? "transition" : "whole";
  const outline = outlineAlert(message, view, { ...FULL_CAPS, members: { ...MEMBERS, ...elsewhere } });
  // Half a link leads nowhere: what is cut is the text before them.
  const links = outline.links.map(({ title, href }) => `\n${toInert(title)}: ${href}`).join("");
  const text = toPlainLines(outline).map(toInert).join("\n");
  return `${cutText(text, maxChars - Array.from(links).length)}${links}`;
}

function createAlert(message: AlertMessage): OpsgenieRequest {
  const { subject, headline } = outlineAlert(message, "whole", {
    ...FULL_CAPS,
    title: OPSGENIE_LIMITS.entity,
  });
  const { severity, kind, zoneId, zoneName, zoneLabels = {}, ruleId, dedupeKey } = message;
  const rule = ruleId === null ? "" : toInert(toLine(ruleId, 200));
  const body = {
    message: cutText(toInert(headline === "" ? subject : headline), OPSGENIE_LIMITS.message),
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

/** The headline of an acknowledgement says by whom. */
function noteWho(message: AlertMessage): string {
  const { headline } = outlineAlert(message, "transition");
  return message.reason === "acknowledged" ? toInert(headline) : describeReason(message);
}

/**
 * What a transition asks of the Alert API, in order; each is harmless when it arrives twice. The alias keeps it one alert
 * there; late news of one that is over never opens another. What of a long list of rules has no room in it follows as notes.
 */
export function toOpsgenieRequests(message: AlertMessage): OpsgenieRequest[] {
  const { state, reason, severity, dedupeKey } = message;
  const about = (method: "POST" | "PUT", verb: string, body: OpsgenieRequest["body"]): OpsgenieRequest => {
    return { method, path: `/v2/alerts/${encodeURIComponent(dedupeKey)}/${verb}`, byAlias: true, body };
  };
  const note = () => toDescription(message, OPSGENIE_LIMITS.note);
  if (state === "resolved" || reason === "resolved") {
    return [about("POST", "close", { source: SOURCE, note: note() })];
  }
  if (reason === "advice") return [about("POST", "notes", { source: SOURCE, note: note() })];
  if (reason === "acknowledged" || (reason === "repeat" && state === "acknowledged")) {
    return [about("POST", "acknowledge", { source: SOURCE, note: noteWho(message) })];
  }
  // Of an alert that is open already, only its count rises: the priority has a request of its own.
  const raise = about("PUT", "priority", { priority: PRIORITIES[severity] });
  const rest = outlineAlert(message, "whole", { ...FULL_CAPS, members: MEMBERS }).members?.rest ?? [];
  const notes = partMembers(message, rest, PART_ROOM).map(({ title, lines }) =>
    about("POST", "notes", { source: SOURCE, note: [title, ...lines].map(toInert).join("\n") }),
  );
  return [createAlert(message), ...(reason === "worse" ? [raise] : []), ...notes];
}
