import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAlerts } from "#db/alerting/alert-reports.ts";
import type { AlertRow } from "#db/alerting/alerts.ts";
import { toLine } from "#lib/text.ts";
import { maskMessage } from "#operations/alerts/mask-message.ts";
import { summariseAlert } from "#operations/alerts/summarise-alert.ts";
import { known, visibleZones, ZoneId } from "#operations/fields.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { toAlertRecord } from "#stages/alerting/alert-record.ts";
import { maskNullable } from "#stages/archive/mask/mask-text.ts";
import { outlineAlert } from "#stages/delivery/message/outline-alert.ts";
import { toPlainLines } from "#stages/delivery/message/outline-lines.ts";
import { type AtomEntry, renderAtom } from "../../feed/atom-feed.ts";
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
        querystring: z.strictObject({ zone: ZoneId.optional() }),
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
  const outline = message === null ? null : outlineAlert(message, "whole");
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
    lines: outline === null ? [] : toPlainLines(outline),
    links: outline?.links ?? [],
  };
}
