/** The channel of Alertmanager, and an alert as its alerts. */

import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { type Block, type SafeLink, toDocument } from "#delivery/rules/message/document.ts";
import {
  toCommands,
  toInert,
  toPlain,
  toPlainLines,
  toPlainOf,
} from "#delivery/rules/message/write-document.ts";
import { formatIso } from "#lib/format.ts";
import { packWithin, toLine } from "#lib/text.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { SEVERITIES } from "#model/kinds.ts";
import { isEnding } from "#model/words.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { readReply } from "../../delivery-error.ts";
import { extendEndpoint, openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post } from "../../post.ts";

type Severity = AlertMessage["severity"];

const LABEL_CHARS = 200;
export const MAX_BODY_BYTES = 900_000;
const MEMBER_ROWS = 10;
/** Annotations have no limit of their own, but the messages that are built from them have limits. */
const CAPS = {
  advice: { maxLines: 12, maxChars: 1_200 },
  members: { rows: MEMBER_ROWS, rowChars: 160, chars: 1_200 },
};
/** Alertmanager identifies an alert by its labels, so a rule's labels never change except for the severity. */
function toLabels(message: AlertMessage, severity: Severity): Record<string, string> {
  const { zoneId, ruleId, kind, fingerprint } = message;
  const rule = toInert(toLine(ruleId ?? "", LABEL_CHARS));
  return {
    alertname: `Longwatch${kind.replace(/(?:^|-)(.)/g, (_, first: string) => first.toUpperCase())}`,
    severity,
    fingerprint: toLine(fingerprint, 255),
    ...(zoneId === null ? {} : { zone_id: String(zoneId) }),
    ...(rule === "" ? {} : { rule_id: rule }),
  };
}

const nameTop = (label: string) => `top_${label.toLowerCase().replaceAll(/\W+/g, "_")}`;

function toAnnotations(message: AlertMessage): Record<string, string> {
  const whole = { ...message, reason: message.reason === "advice" ? ("first" as const) : message.reason };
  const document = toDocument(whole, "whole", CAPS);
  const { subject, brief, blocks, links } = document;
  const named = (wanted: Block["name"]) => blocks.filter(({ name }) => name === wanted);
  const annotations: Record<string, string> = {
    summary: brief,
    verdict: toPlainOf(document, "verdict").join("\n"),
    description: [subject, ...toPlainOf(document, "facts")].join("\n"),
    counts: toPlainOf(document, "curve").join(""),
    rules: toPlainLines({ blocks: named("members") }).join("\n"),
    ...Object.fromEntries(named("top").map((block) => [nameTop(block.heading), toPlain(block).join("\n")])),
    advice: named("advice")
      .flatMap((block) => [block.heading, ...toPlain(block)])
      .join("\n"),
    ...Object.fromEntries(toCommands(document, toInert)),
    zone_name: message.zoneName ?? "",
  };
  const written = Object.entries(annotations).filter(([, text]) => text !== "");
  return { ...Object.fromEntries(written.map(([name, text]) => [name, toInert(text)])), ...nameLinks(links) };
}

/** Returns an annotation per link, such as `link_runbook_sqli`, so that templates and dashboards can link it. */
function nameLinks(links: readonly SafeLink[]): Record<string, string> {
  const named: Record<string, string> = {};
  for (const [index, { title, href }] of links.entries()) {
    const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
    const name = ["link", ...words].join("_");
    named[words.length === 0 || name in named ? `${name}_${index + 1}` : name] = href;
  }
  return named;
}

type ZoneLabels = Readonly<Record<string, string>>;
const zoneLabels = z.record(z.string(), z.string());

/** Returns the severity and the zone's labels in a channel's reference; null, and none, for any other text. */
export function readPosted(reference: string | null) {
  const [word] = (reference ?? "").split(" ", 1);
  const [, json = "{}"] = /^\w+ (\{.*\})$/s.exec(reference ?? "") ?? [];
  const posted = SEVERITIES.find((severity) => severity === word) ?? null;
  return { posted, postedLabels: readReply(json, zoneLabels) ?? {} };
}

/** Returns the labels of an alert that may change while it fires, as the reference for its next message. */
export function toPostedReference({ severity, zoneLabels: labels = {} }: AlertMessage): string {
  return Object.keys(labels).length === 0 ? severity : `${severity} ${JSON.stringify(labels)}`;
}

/**
 * Returns an alert for Alertmanager's API v2. `posted` is the severity under which the alert was posted before. If the
 * severity or the zone's labels have changed, the same request ends the alert with the old labels, which would
 * otherwise keep firing as another alert. A firing alert ends by itself after `firingForMs` unless it is posted again.
 * An end is never in the future. The rules of an incident are in an annotation, because they do not notify by themselves.
 */
export function toAlertmanagerAlerts(
  message: AlertMessage,
  options: {
    readonly atMs: number;
    readonly posted: Severity | null;
    /** The zone's labels under which the alert was posted before. */
    readonly postedLabels?: ZoneLabels;
    readonly firingForMs: number;
    /** Labels for every alert. If names are equal, Longwatch's own labels replace these. */
    readonly labels?: Readonly<Record<string, string>>;
  },
) {
  const { atMs, posted, firingForMs, labels: own = {}, postedLabels = {} } = options;
  const { zoneLabels: zone = {} } = message;
  const generatorURL = toDocument(message, "whole", CAPS).links[0]?.href;
  const annotations = toAnnotations(message);
  const isResolved = message.state === "resolved" || isEnding(message.reason);
  // An element of `POST /api/v2/alerts`. Times are RFC 3339.
  const make = (severity: Severity, ofZone: ZoneLabels, endsAtMs: number) => {
    const labels = { ...ofZone, ...own };
    const span = {
      startsAt: formatIso(Math.min(message.startedAt, endsAtMs)),
      endsAt: formatIso(endsAtMs),
      ...(generatorURL === undefined ? {} : { generatorURL }),
    };
    return [{ labels: { ...labels, ...toLabels(message, severity) }, annotations, ...span }];
  };
  if (isResolved) {
    const endedAtMs = Math.min(message.endedAt ?? atMs, atMs);
    return make(posted ?? message.severity, posted === null ? zone : postedLabels, endedAtMs);
  }
  const firing = make(message.severity, zone, atMs + firingForMs);
  const isSame = posted === message.severity && isDeepStrictEqual(postedLabels, { ...zone });
  return posted === null || isSame ? firing : [...make(posted, postedLabels, atMs), ...firing];
}

/** Returns the request bodies in order. A proxy in front of Alertmanager may refuse more than a megabyte. */
function toAlertmanagerBodies(alerts: readonly object[]): readonly string[] {
  const written = alerts.map((alert) => JSON.stringify(alert));
  const packed = packWithin(written, MAX_BODY_BYTES - 2, (json) => Buffer.byteLength(json) + 1);
  return packed.map((parts) => `[${parts.join(",")}]`);
}

const DEFAULT_FIRING_HOURS = 24;

const settings = {
  /** Address of Alertmanager, without `/api/v2`. */
  url: secretText,
  /** The whole Authorization header, such as `Bearer ...`, if a proxy in front of Alertmanager requires one. */
  authorization: secretText.optional(),
  /** Labels for every alert. */
  labels: z.record(z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*$/), z.string().min(1).max(200)).optional(),
  /** Time that Alertmanager keeps a firing alert that is not sent again, for example because Longwatch is down. */
  firingForHours: z.number().min(1).max(168).optional(),
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

/**
 * Sends to Prometheus Alertmanager, API v2, which does its own grouping, silencing and routing. An alert that arrives
 * twice has the same labels and stays one alert. The reference is the severity under which the alert was last posted.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const { name, authorization, labels = {}, firingForHours = DEFAULT_FIRING_HOURS, clock } = options;
  const firingForMs = firingForHours * HOUR_MS;
  const endpoint = extendEndpoint(openEndpoint(name, options.url, options.network ?? {}), "/api/v2/alerts");
  return async (message, { signal, providerReference }) => {
    const posted = readPosted(providerReference);
    const alerts = toAlertmanagerAlerts(message, { ...posted, atMs: clock(), firingForMs, labels });
    const bodies = toAlertmanagerBodies(alerts);
    for (const body of bodies) {
      await post(endpoint, {
        headers: authorization === undefined ? {} : { authorization: authorization.reveal() },
        body,
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock,
        signal,
        // A page of a proxy in front of Alertmanager is an answer of 200 as well.
        confirms: ({ body: answer }) => answer.trim() === "",
        secrets: authorization === undefined ? [] : [authorization],
      });
    }
    const messages = bodies.length;
    return { providerReference: toPostedReference(message), ...(messages === 1 ? {} : { messages }) };
  };
}

function renderAlertmanager(message: AlertMessage, atMs: number): readonly string[] {
  const firingForMs = DEFAULT_FIRING_HOURS * HOUR_MS;
  return toAlertmanagerBodies(toAlertmanagerAlerts(message, { atMs, posted: null, firingForMs }));
}

export const alertmanager = defineChannel({
  kind: "alertmanager",
  settings,
  example: {
    url: "https://alerts.example/example-path",
    authorization: "Bearer example-token",
    labels: { team: "edge" },
    firingForHours: 24,
  },
  capabilities: {
    rate: { perMinute: 600, digest: null },
    longestPauseMs: 60_000,
    laterTransitions: "same-incident",
    showsAcknowledgements: false,
    // Half of the shortest firing_for_hours.
    renewAfterMs: HOUR_MS / 2,
    limits: { message: { most: MAX_BODY_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderAlertmanager,
  createSender,
});
