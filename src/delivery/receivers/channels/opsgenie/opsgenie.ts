/** The channel of Opsgenie, and an alert as its requests. */

import { z } from "zod";
import {
  defineChannel,
  type Notifier,
  type SenderOptions,
  secretText,
  textSettings,
} from "#delivery/receivers/channel-definition.ts";
import { openApi, sendParts } from "#delivery/receivers/post.ts";
import { describeReason } from "#delivery/rules/message/describe-alert.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { leaveOut, toInert, toPlainLines } from "#delivery/rules/message/write-document.ts";
import { createSecret } from "#lib/secret.ts";
import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";

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

interface OpsgenieRequest {
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
const MEMBER_ROWS = 10;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 150, chars: 4_000, measure: measureInert } as const;
/** Space for a note's title and for the number of rules that no note lists. */
const PART_ROOM = { chars: OPSGENIE_LIMITS.note - 500, lineChars: 2_000, measure: measureInert } as const;

/** Returns the full text of the alert; for advice, which becomes a note next to the description, only the advice. */
function toDescription(message: AlertMessage, maxChars: number): string {
  const elsewhere = showsMembers(message) ? "in the notes" : undefined;
  const view = message.reason === "advice" ? "transition" : "whole";
  const document = toDocument(message, view, { members: { ...MEMBERS, elsewhere } });
  // A cut link would not work, so only the text before the links is cut.
  const links = document.links.map(({ title, href }) => `\n${toInert(title)}: ${href}`).join("");
  const text = toPlainLines(leaveOut(document, "links"), toInert).join("\n");
  return `${cutText(text, maxChars - Array.from(links).length)}${links}`;
}

function createAlert(message: AlertMessage): OpsgenieRequest {
  const { subject, brief } = toDocument(message, "whole", { title: OPSGENIE_LIMITS.entity });
  const { severity, kind, zoneId, zoneName, zoneLabels = {}, ruleId, dedupeKey } = message;
  const rule = ruleId === null ? "" : toInert(toLine(ruleId, 200));
  const body = {
    message: cutText(toInert(brief), OPSGENIE_LIMITS.message),
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
  const { headline } = toDocument(message, "transition");
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
  const rest = toDocument(message, "whole", { members: MEMBERS }).members?.rest ?? [];
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

const settings = {
  /** The key of an API integration. */
  apiKey: secretText,
  /** The address without `/v2/alerts`. Default: Opsgenie's own. For the EU it is `https://api.eu.opsgenie.com`. */
  url: z.url().optional(),
  ...textSettings,
};

/** "Request will be processed" */
const taken = z.object({ result: z.string() });

type Options = SenderOptions<typeof settings>;
type Render = (message: AlertMessage) => OpsgenieRequest[];

/**
 * Sends to Opsgenie's Alert API or a compatible one. The API answers 202 before it has processed a request. Because of
 * the alias, an alert that arrives twice is one alert.
 * @throws {UsageError} for a bad URL or key
 */
function createSender(options: Options, ownUrl: string, render: Render): Notifier["send"] {
  const { apiKey } = options;
  const url = createSecret(options.url ?? ownUrl);
  const headers = { authorization: `GenieKey ${apiKey.reveal()}` };
  const call = openApi(options, { url, credentials: { apiKey }, headers, answer: taken });
  return async (message, sending) => {
    const requests = render(message);
    return sendParts(requests.length, sending, async (index) => {
      const request = requests[index];
      if (request === undefined) return null;
      const { method, path, byAlias, body } = request;
      await call(body, sending, { method, path, ...(byAlias && { query: { identifierType: "alias" } }) });
      return null;
    });
  };
}

const channel = {
  settings,
  example: { apiKey: "example-key" },
  capabilities: {
    rate: { perMinute: 100, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: OPSGENIE_LIMITS.note, unit: "characters" }, memberRows: MEMBER_ROWS },
  },
} as const;

/** Defines a channel for an API that takes Opsgenie's requests below its own address. */
export function defineAlertApi<Kind extends string>(kind: Kind, ownUrl: string, render: Render) {
  const create = (options: Options) => createSender(options, ownUrl, render);
  return defineChannel({ kind, ...channel, render, createSender: create });
}

export const opsgenie = defineAlertApi("opsgenie", "https://api.opsgenie.com", toOpsgenieRequests);
