import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAlerts, type RankedAlert, type ReportedAlert, readAlert } from "#db/alerting/alert-reports.ts";
import { ALERT_KINDS, ALERT_SORTS, ALERT_STATES, SEVERITIES } from "#model/kinds.ts";
import {
  known,
  maySee,
  notFound,
  oneOrMore,
  pageOf,
  pageQuery,
  RowId,
  RuleId,
  Time,
  toPage,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { checkOrder } from "#operations/span.ts";
import { AlertDetail, AlertItem } from "./alert-schemas.ts";
import type { ApiDeps } from "./api-deps.ts";
import { readAlertDetails, readAlertView, toAlertDetail, toAlertItem } from "./to-alert-item.ts";

const Query = z.strictObject({
  state: oneOrMore(ALERT_STATES).optional(),
  zone: ZoneId.optional(),
  rule: RuleId.optional().describe("A rule id (942100), or a family of rules with * at the end (942*)."),
  severity: oneOrMore(SEVERITIES).optional(),
  kind: oneOrMore(ALERT_KINDS).optional(),
  since: Time.optional().describe("Alerts that fired at this time or later."),
  until: Time.optional().describe("Alerts that fired before this time."),
  sort: z
    .enum(ALERT_SORTS)
    .default("newest")
    .describe(
      "worst: firing alerts first, then acknowledged ones, each by severity, and the newest of one severity first. newest: the order does not change while you read pages.",
    ),
  ...pageQuery({ fallback: 50, most: 200 }),
});

/** `GET /api/v1/alerts` and `GET /api/v1/alerts/{id}`. */
export function addAlerts(app: FastifyInstance, { archive, clock, cursors }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/alerts",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Alerts"],
        summary: "List alerts, newest or worst first",
        querystring: Query,
        response: { 200: pageOf(AlertItem) },
      },
    },
    async ({ query, caller }) => {
      const { state, zone, rule, severity, kind, since, until, sort, limit, after } = query;
      const list = `alerts:${JSON.stringify([state, zone, rule, severity, kind, since, until, sort])}`;
      checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
      const last = cursors.readAfter(list, after);
      const rows = await listAlerts(archive, {
        states: state,
        zoneIds: visibleZones(caller, zone),
        rule,
        severities: severity,
        kinds: kind,
        sinceMs: since,
        untilMs: until,
        sort,
        after: last === null ? undefined : { id: Number(last[0]), urgency: Number(last[1]) },
        limit: limit + 1,
      });
      const view = await readAlertView(archive, known(caller).masked, clock());
      const toItem = (row: RankedAlert) => toAlertItem(row, view);
      return toPage(rows, limit, toItem, ({ id, urgency }) => cursors.sign(list, [id, urgency]));
    },
  );

  typed.get(
    "/api/v1/alerts/:id",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Alerts"],
        summary: "Show one alert with its history, evidence and deliveries",
        params: z.object({ id: RowId }),
        response: { 200: AlertDetail },
      },
    },
    async ({ params, caller }) => {
      const row = await findAlert(archive, caller, params.id);
      const nowMs = clock();
      return toAlertDetail(await readAlertDetails(archive, row, nowMs), known(caller).masked, nowMs);
    },
  );
}

/** @throws {Refusal} 404 if there is no such alert, or the caller may not see it */
export async function findAlert(
  archive: ApiDeps["archive"],
  caller: Parameters<typeof maySee>[0],
  id: number,
): Promise<ReportedAlert> {
  const row = await readAlert(archive, id);
  if (row === null || !maySee(caller, row.zoneId)) throw notFound(`alert ${id}`);
  return row;
}
