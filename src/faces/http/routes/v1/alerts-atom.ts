/** The alerts as an Atom feed. */

import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { maskMessage, summariseAlert } from "#alerts/operations/mask-message.ts";
import { parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { maskNullable } from "#archive/rules/mask.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import type { AlertRow } from "#db/alerts/alerts.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { leaveOut, toPlainLines } from "#delivery/rules/message/write-document.ts";
import { escapeMarkup, toLine } from "#lib/text.ts";
import { known, ListZones, toIso, visibleZones } from "#operations/fields.ts";
import type { OperationParts } from "../../operations.ts";

const MAX_ENTRIES = 50;
const MAX_TITLE_CHARS = 300;
const ATOM_TYPE = "application/atom+xml; charset=utf-8";

/** `GET /api/v1/alerts.atom`: the newest alerts for a feed reader; an entry changes when its alert does. */
export function addAlertsAtom(
  app: FastifyInstance,
  { db, instanceId }: Pick<OperationParts, "db" | "instanceId">,
): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/alerts.atom",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Alerts"],
        summary: `Show the ${MAX_ENTRIES} newest alerts as an Atom feed`,
        querystring: z.strictObject({ zone: ListZones }),
        response: { 200: { content: { "application/atom+xml": { schema: z.string() } } } },
      },
    },
    async ({ query, caller }, reply) => {
      const zoneIds = visibleZones(caller, query.zone);
      const rows = await listAlerts(db, { zoneIds, limit: MAX_ENTRIES });
      const { masked } = known(caller);
      const entries = rows.map((row) => toEntry(row, masked));
      const feed = renderAtom({ instanceId, title: "Longwatch alerts", entries });
      return reply.type(ATOM_TYPE).serializer(String).send(feed);
    },
  );
}

function toEntry(row: AlertRow, isMasked: boolean): AtomEntry {
  const { id, state, severity, kind, zoneId, firedAt, headline } = summariseAlert(row);
  const stored = parseDetails(row.details).message;
  const message = stored !== null && isMasked ? maskMessage(stored) : stored;
  const document = message === null ? null : toDocument(message, "whole");
  const shown = isMasked ? maskNullable(headline) : headline;
  const said = shown === null ? `alert ${id}` : toLine(shown, MAX_TITLE_CHARS);
  const title = state === "resolved" ? `Resolved: ${said}` : `${severity.toUpperCase()}: ${said}`;
  const zone = zoneId === null ? [] : ([["zone", String(zoneId)]] as const);
  return {
    alertId: id,
    title,
    publishedAt: firedAt,
    updatedAt: toAlertRecord(row).transitions.at(-1)?.at ?? firedAt,
    categories: [["state", state], ["severity", severity], ["kind", kind], ...zone],
    lines: document === null ? [] : toPlainLines(leaveOut(document, "links")),
    links: document?.links ?? [],
  };
}

interface AtomEntry {
  readonly alertId: number;
  readonly title: string;
  /** Epoch ms. */
  readonly publishedAt: number;
  readonly updatedAt: number;
  /** State, severity and others: `[scheme, term]`. */
  readonly categories: readonly (readonly [scheme: string, term: string])[];
  /** Plain text. */
  readonly lines: readonly string[];
  /** The operator's links, in the order of the message. */
  readonly links: readonly { readonly title: string; readonly href: string }[];
}

interface AtomFeed {
  /** Identifies the installation: letters and digits. */
  readonly instanceId: string;
  readonly title: string;
  readonly entries: readonly AtomEntry[];
}

const FEED_PATH = "/api/v1/alerts.atom";

/**
 * Returns an Atom document (RFC 4287). Ids are tag URIs (RFC 4151), which depend neither on the time nor on the
 * server's address. A transition of an alert updates its entry. All text is plain and escaped. The links lead to the
 * API and, as `related`, to the operator's own addresses.
 */
function renderAtom({ instanceId, title, entries }: AtomFeed): string {
  const authority = `tag:${instanceId}.longwatch.invalid,2026`;
  const updatedAt = entries.reduce((latest, entry) => Math.max(latest, entry.updatedAt), 0);
  return [
    '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n',
    line(1, "id", `${authority}:alerts`),
    line(1, "title", title),
    line(1, "updated", toIso(updatedAt)),
    `  <author><name>Longwatch</name></author>\n  <generator>Longwatch</generator>\n`,
    `  <link rel="self" type="application/atom+xml" href="${FEED_PATH}"/>\n`,
    ...entries.map((entry) => renderEntry(authority, entry)),
    "</feed>\n",
  ].join("");
}

function renderEntry(authority: string, entry: AtomEntry): string {
  const { alertId, title, publishedAt, updatedAt, categories, lines, links } = entry;
  return [
    "  <entry>\n",
    line(2, "id", `${authority}:alerts/${alertId}`),
    line(2, "title", title),
    line(2, "published", toIso(publishedAt)),
    line(2, "updated", toIso(updatedAt)),
    `    <link rel="alternate" type="application/json" href="/api/v1/alerts/${alertId}"/>\n`,
    ...links.map(
      ({ title, href }) =>
        `    <link rel="related" href="${escapeMarkup(href)}" title="${escapeMarkup(title)}"/>\n`,
    ),
    ...categories.map(
      ([scheme, term]) =>
        `    <category scheme="urn:longwatch:${escapeMarkup(scheme)}" term="${escapeMarkup(term)}"/>\n`,
    ),
    `    <content type="text">${escapeMarkup(lines.join("\n"))}</content>\n`,
    "  </entry>\n",
  ].join("");
}

function line(depth: number, name: string, text: string): string {
  return `${"  ".repeat(depth)}<${name}>${escapeMarkup(text)}</${name}>\n`;
}
