/** The audit trail. */

import { hash } from "node:crypto";
import { z } from "zod";
import type { Config } from "#config/config.ts";
import type { Alerting } from "#config/file/config-file.ts";
import type { Database } from "#db/client.ts";
import { listAudit, readLatestAct, writeAuditEntry } from "#db/people/audit-trail.ts";
import { showAge, showTime } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { whoRuns } from "#lib/process.ts";
import { shortenText } from "#lib/text.ts";
import { IsoTime, Name, pageOf, pageQuery, Time, toIso, toPage } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { checkOrder } from "#operations/span.ts";

const MAX_NAME_CHARS = 64;
const MAX_DETAIL_CHARS = 300;

/** Addresses in an entry are masked when it is written, because no erasure reaches it. */
const AuditItem = z
  .object({
    id: z.number().int(),
    at: IsoTime,
    actor: Name,
    action: Name,
    subject: Name,
    details: z.unknown().meta({ masked: "open" }),
  })
  .meta({ id: "AuditEntry" });

const name = (text: string) => shortenText(text, MAX_NAME_CHARS);

export const auditOperations = [
  defineQuery({
    name: "audit.list",
    summary: "List the audit trail, newest first",
    http: ["GET", "/api/v1/audit"],
    tag: "Keys",
    scope: "admin",
    refuses: [422],
    input: z.strictObject({
      since: Time.optional().describe("The begin, such as -30d."),
      until: Time.optional().describe("The end."),
      action: z
        .string()
        .regex(
          /^[a-z][a-z.-]{0,60}$/,
          "must be an action such as key.created, or the beginning of one with . at its end (key.)",
        )
        .optional()
        .describe("One action such as erasure.completed, or the beginning of some, such as erasure."),
      ...pageQuery({ fallback: 50, most: 500 }),
    }),
    output: pageOf(AuditItem),
    command: {
      examples: [
        "audit list",
        "audit list --since -30d --action erasure.",
        "audit list --action erasure.completed --json",
      ],
      help: "Postgres refuses to change or delete an entry.",
      limit: 50,
      columns: [
        { head: "ENTRY", get: ({ id }) => `#${id}` },
        { head: "AGE", get: ({ at }, { now }) => showAge(now - Date.parse(at)) },
        { head: "AT (UTC)", get: ({ at }) => showTime(at) },
        { head: "BY", get: ({ actor }) => name(actor) },
        { head: "ACTION", get: ({ action }) => ({ text: name(action), style: "bold" }) },
        { head: "SUBJECT", get: ({ subject }) => name(subject) },
        { head: "DETAILS", get: ({ details }) => describeDetails(details) },
      ],
      empty: "No entry matches.",
    },
    run: async ({ db, cursors }, { since, until, action, limit, after }) => {
      checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
      const list = `audit:${JSON.stringify([since, until, action])}`;
      const [beforeId] = cursors.readAfter(list, after)?.map(Number) ?? [];
      const rows = await listAudit(db, { since, until, action, beforeId, limit: limit + 1 });
      const toItem = ({ at, ...entry }: (typeof rows)[number]) => ({ ...entry, at: toIso(at) });
      return toPage(rows, limit, toItem, ({ id }) => cursors.sign(list, [id]));
    },
  }),
];

function describeDetails(details: unknown): string {
  const text = shortenText(JSON.stringify(details), MAX_DETAIL_CHARS);
  return text === "{}" ? "" : text;
}

const ACTION = "config.changed";

/**
 * Writes an audit entry with the settings that all replicas share, if they differ from those of the last entry. The
 * entry contains only whether a secret is set. Replicas that start at once may each write the same entry.
 */
export async function auditConfig({ db }: Database, config: Config, alerting: Alerting): Promise<void> {
  const { edge, spikeZ, advicePerHour, retention, fallback } = config;
  // Replicas may keep their secrets in different files.
  const { accounts, secretFiles: _, ...routed } = alerting;
  const settings = {
    platform: edge.url === null ? (accounts.length > 0 ? null : "emulator") : new URL(edge.url).origin,
    zones: edge.zones,
    requestsPerSecond: edge.requestsPerSecond,
    ...(accounts.length > 0 && {
      accounts: accounts.map(({ name, url, zoneIds, requestsPerSecond }) => {
        return { name, platform: new URL(url).origin, zones: zoneIds, requestsPerSecond };
      }),
    }),
    schedule: alerting.schedule,
    spikeZ,
    advicePerHour,
    retention,
    fallback,
    host: config.http.host,
    trustedProxies: config.http.trustedProxies,
    areMetricsPublic: config.http.areMetricsPublic,
    allowsPrivateWebhooks: config.channels.allowPrivate,
    adviceOnRequest: config.adviceOnRequest,
    hasPseudonymKey: config.pseudonymKey !== null,
    channels: alerting.channels.map(({ name, kind }) => `${name} (${kind})`),
    destinations: alerting.destinations.map(({ name, kind }) => `${name} (${kind})`),
    // Routes and detection settings may be long and may name people.
    alerting: hash("sha256", JSON.stringify(routed), "hex").slice(0, 16),
  };
  const digest = hash("sha256", JSON.stringify(settings), "hex").slice(0, 16);
  const latest = await readLatestAct(db, ACTION);
  if (isObject(latest?.details) && latest.details["digest"] === digest) return;
  const details = { ...settings, digest };
  await writeAuditEntry(db, { actor: whoRuns(), action: ACTION, subject: "configuration", details });
}
