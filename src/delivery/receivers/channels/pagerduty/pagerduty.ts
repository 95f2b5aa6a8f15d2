/** The channel of PagerDuty, and an alert as its event. */

import { z } from "zod";
import { describeBriefly, describeReason } from "#delivery/rules/message/describe-alert.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { partMembers } from "#delivery/rules/message/group-members.ts";
import { toCommands, toInertPlain, toPlain, toPlainOf } from "#delivery/rules/message/write-document.ts";
import { formatIso } from "#lib/format.ts";
import { createSecret } from "#lib/secret.ts";
import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import { nameZone } from "#model/zones.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openApi } from "../../post.ts";

/**
 * Limits of Events API v2: characters of the key and the summary, bytes of a whole event (developer.pagerduty.com,
 * "Send an alert event" and "Limits"). The parts below add up to fewer bytes.
 */
export const PAGERDUTY_LIMITS = { dedupKey: 255, summary: 1_024, bytes: 512_000 } as const;

const measureJson = (text: string) => Buffer.byteLength(JSON.stringify(toInertPlain(text))) - 2;
const MEMBERS = { rows: 20, rowChars: 200, chars: 0 } as const;
/** One event lists all rules. It has space for tens of thousands. */
const NAMES_ROOM = { chars: 400_000, lineChars: 2_000, measure: measureJson, most: 1 } as const;

interface PagerDutyPayload {
  readonly summary: string;
  readonly source: string;
  readonly severity: AlertMessage["severity"];
  /** ISO 8601. */
  readonly timestamp: string;
  readonly component?: string;
  readonly group?: string;
  readonly class: string;
  readonly custom_details: Readonly<Record<string, unknown>>;
}

/** An event without its routing key. */
type PagerDutyEvent =
  | { readonly event_action: "acknowledge" | "resolve"; readonly dedup_key: string }
  | {
      readonly event_action: "trigger";
      readonly dedup_key: string;
      readonly client: "Longwatch";
      readonly client_url?: string;
      readonly links: readonly { readonly href: string; readonly text: string }[];
      readonly payload: PagerDutyPayload;
    };

/** A late transition of a resolved alert must not trigger, because that would open a new incident. */
function toAction({ state, reason }: AlertMessage): PagerDutyEvent["event_action"] {
  if (state === "resolved" || isEnding(reason)) return "resolve";
  const isTaken = reason === "acknowledged" || (reason === "repeat" && state === "acknowledged");
  return isTaken ? "acknowledge" : "trigger";
}

function toDetails(message: AlertMessage): Record<string, unknown> {
  const document = toDocument({ ...message, reason: "first" }, "whole", { members: MEMBERS });
  const { blocks, members } = document;
  const verdict = toPlainOf(document, "verdict", toInertPlain);
  const curve = toPlainOf(document, "curve", toInertPlain);
  const [names] = partMembers(message, members?.rest ?? [], NAMES_ROOM);
  const listed = members === null ? [] : [...members.rows, ...members.others, ...(names?.lines ?? [])];
  const lists = blocks.filter(({ name }) => name === "top" || name === "advice");
  return {
    ...(verdict.length === 0 ? {} : { verdict }),
    status: describeReason(message),
    facts: toPlainOf(document, "facts", toInertPlain),
    ...Object.fromEntries(toCommands(document, toInertPlain)),
    ...(members === null ? {} : { [members.heading]: listed.map(toInertPlain) }),
    ...(curve.length === 0 ? {} : { counts: curve.join("") }),
    ...Object.fromEntries(lists.map((block) => [block.heading, toPlain(block, toInertPlain)])),
    ...(message.zoneLabels === undefined ? {} : { zone_labels: message.zoneLabels }),
  };
}

function toPayload(message: AlertMessage): PagerDutyPayload {
  const { zoneId, zoneName, ruleId } = message;
  const news = message.reason === "first" ? "" : `${describeReason(message)}: `;
  const summary = `${news}${toLine(describeBriefly(message), PAGERDUTY_LIMITS.summary)}`;
  return {
    summary: cutText(toInertPlain(summary), PAGERDUTY_LIMITS.summary),
    source: zoneId === null ? "Longwatch" : toInertPlain(nameZone(zoneId, zoneName)),
    severity: message.severity,
    timestamp: formatIso(message.startedAt),
    ...(ruleId === null ? {} : { component: toInertPlain(toLine(`rule ${ruleId}`, 255)) }),
    ...(zoneId === null ? {} : { group: `zone ${zoneId}` }),
    class: message.kind,
    custom_details: toDetails(message),
  };
}

/** Returns an event of Events API v2. All transitions have the same key, so the alert stays one incident. */
export function toPagerDutyEvent(message: AlertMessage): PagerDutyEvent {
  const event_action = toAction(message);
  const dedup_key = message.dedupeKey;
  if (event_action !== "trigger") return { event_action, dedup_key };
  const { links } = toDocument(message, "whole");
  return {
    event_action,
    dedup_key,
    client: "Longwatch",
    ...(links[0] === undefined ? {} : { client_url: links[0].href }),
    links: links.map(({ title, href }) => ({ href, text: toInertPlain(title) })),
    payload: toPayload(message),
  };
}

const settings = {
  /** The integration key of an Events API v2 integration. */
  routingKey: secretText,
  /** Default: the US service region. For the EU it is `https://events.eu.pagerduty.com/v2/enqueue`. */
  url: z.url().optional(),
  ...networkSettings,
};

const taken = z.object({ status: z.literal("success") });

const example = { routingKey: "example-routing-key-of-32-signs." };

/**
 * Sends to PagerDuty's Events API v2. Because of the dedup key, an event that arrives twice is one incident.
 * @throws {UsageError} for a bad URL or key
 */
function createSender(options: SenderOptions<typeof settings>): Notifier["send"] {
  const { routingKey } = options;
  const isKey = /^[\x21-\x7e]{32}$/.test(routingKey.reveal());
  const mistakes = isKey ? [] : ["routingKey: must be 32 characters"];
  const url = createSecret(options.url ?? "https://events.pagerduty.com/v2/enqueue");
  const call = openApi(options, { url, mistakes, credentials: {}, secrets: [routingKey], answer: taken });
  return async (message, sending) => {
    await call({ routing_key: routingKey.reveal(), ...toPagerDutyEvent(message) }, sending);
    return { providerReference: null };
  };
}

export const pagerduty = defineChannel({
  kind: "pagerduty",
  settings,
  example,
  capabilities: {
    rate: { perMinute: 100, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: true,
    renewAfterMs: null,
    limits: { message: { most: PAGERDUTY_LIMITS.bytes, unit: "bytes" }, memberRows: MEMBERS.rows },
  },
  render: (message) => [{ routing_key: example.routingKey, ...toPagerDutyEvent(message) }],
  createSender,
});
