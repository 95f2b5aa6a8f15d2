import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listEpisodes, listRisenRules } from "#db/alerting/alert-context.ts";
import { readMark } from "#db/alerting/marks.ts";
import { pageSilences } from "#db/alerting/silences.ts";
import { collectEvidence } from "#db/detection/spike-evidence.ts";
import type { SpikeEvidence } from "#db/schema/spikes.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { IsoTime, known, RowId, toIso, toIsoOrNull } from "#operations/fields.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { toSilences, wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { maskRows } from "#stages/archive/mask/mask-rows.ts";
import { findAlert } from "./alerts.ts";
import type { ApiDeps } from "./api-deps.ts";
import { SILENCE_STATES, Silence, STANDING_OF } from "./silence-schemas.ts";
import { readSilenceView, toSilence } from "./silences.ts";

/** An alert can last for days; what it was about shows in its first hours. */
const MAX_DURING_MS = 6 * HOUR_MS;
/** A spike starts up to some minutes before its detection. These minutes are not in the hour that it is compared with. */
const LEAD_MS = 5 * MINUTE_MS;
const MAX_EPISODES = 50;
const MAX_RISEN = 20;
const MAX_SILENCES = 500;
const NAMES = {
  ip: "ips",
  asn: "asns",
  country: "countries",
  path: "paths",
  ua: "userAgents",
  ja4: "ja4s",
  action: "actions",
} as const;

const Top = z.array(z.object({ value: z.string(), count: z.number(), share: z.number() }));

const Evidence = z.object({
  from: IsoTime,
  to: IsoTime,
  total: z.number(),
  sampled: z.number().describe("The newest events, over which the lists are counted."),
  top: z
    .object({ ips: Top, asns: Top, countries: Top, paths: Top, userAgents: Top, ja4s: Top, actions: Top })
    .describe("The five most frequent values of each list. The values are text from requests. Escape them."),
});

export const AlertContext = z
  .object({
    during: Evidence.nullable().describe(
      "The whole minutes from the beginning of the window that fired to the end of the alert, at most six hours. Null if the alert is about no single rule, or its events are no longer kept.",
    ),
    before: Evidence.nullable().describe("The hour before the alert."),
    risen: z
      .array(
        z.object({
          zoneId: z.number().int(),
          ruleId: z.string(),
          ruleTitle: z.string().nullable(),
          during: z.number(),
          before: z.number().describe("Events in the time of the same length before the alert."),
        }),
      )
      .describe("Other rules and zones with at least ten events and more than twice as many as before."),
    episodes: z
      .array(
        z.object({
          alertId: z.number().int(),
          firedAt: IsoTime,
          resolvedAt: IsoTime.nullable(),
          state: z.string(),
          severity: z.string().nullable(),
          mark: z.string().nullable().describe("attack or noise, as a person marked it."),
          peak: z.number().nullable(),
        }),
      )
      .describe("Other alerts about the same rule, newest first."),
    mark: z.enum(["attack", "noise"]).nullable().describe("How a person marked the alert."),
    silences: z
      .array(Silence)
      .describe("Silences that match the alert, those that are over as well, newest first."),
  })
  .meta({ id: "AlertContext" });

/** `GET /api/v1/alerts/{id}/context`: what the alert's page shows beside the alert itself. */
export function addAlertContext(app: FastifyInstance, { archive, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/alerts/:id/context",
    {
      config: { access: { scope: "read" }, heavy: "read" },
      schema: {
        tags: ["Alerts"],
        summary: "Show what changed with an alert, what else rose, and what came before",
        params: z.object({ id: RowId }),
        response: { 200: AlertContext },
      },
    },
    async ({ params, caller }) => {
      const asking = known(caller);
      const row = await findAlert(archive, caller, params.id);
      const nowMs = clock();
      const { zoneId, ruleId } = row;
      const message = parseDetails(row.details).message;
      const start = message?.startedAt ?? row.firedAt.getTime();
      // The alert fired when its window ended.
      const fromMs = start - (start % MINUTE_MS) - (message?.windowMinutes ?? 0) * MINUTE_MS;
      const ended = Math.min(row.resolvedAt?.getTime() ?? nowMs, fromMs + MAX_DURING_MS);
      // Whole minutes: the counts by minute add up to the same total.
      const toMs = Math.max(ended - (ended % MINUTE_MS), fromMs + MINUTE_MS);
      const series = zoneId === null || ruleId === null ? null : { zoneId, ruleId };
      const read = async (from: number, to: number) => {
        if (series === null) return null;
        const scope = { ...series, fromMs: from, toMs: to, sinceMs: from, sparkline: [] };
        return toEvidence(await collectEvidence(archive, scope), asking.masked);
      };
      const span = { zoneIds: asking.zoneIds, fromMs, toMs, limit: MAX_RISEN };
      const risen = await listRisenRules(archive, { ...span, except: series ?? { zoneId: 0, ruleId: "" } });
      const episodes =
        series === null
          ? []
          : await listEpisodes(archive, { ...series, exceptId: row.id, limit: MAX_EPISODES });
      const silences = await pageSilences(archive, {
        zoneIds: asking.zoneIds,
        statuses: SILENCE_STATES.map((one) => STANDING_OF[one]),
        nowMs,
        beforeId: undefined,
        limit: MAX_SILENCES,
      });
      const alert = toSilencedAlert(row);
      const view = await readSilenceView(archive, asking, silences, nowMs);
      const matching = new Set(
        toSilences(silences)
          .filter(({ matchers }) => wouldMute(matchers, alert))
          .map(({ id }) => id),
      );
      return {
        mark: await readMark(archive, row),
        during: await read(fromMs, toMs),
        before: await read(fromMs - LEAD_MS - HOUR_MS, fromMs - LEAD_MS),
        risen: risen.map((one) => ({ ...one, ruleTitle: ruleTitle(one.ruleId) })),
        episodes: episodes.map((one) => ({
          ...one,
          firedAt: toIso(one.firedAt),
          resolvedAt: toIsoOrNull(one.resolvedAt),
        })),
        silences: silences.filter(({ id }) => matching.has(id)).map((one) => toSilence(one, view)),
      };
    },
  );
}

function toEvidence(
  { from, to, total, sampled, top }: SpikeEvidence,
  isMasked: boolean,
): z.infer<typeof Evidence> {
  const lists = Object.entries(NAMES).map(([dimension, name]) => {
    const rows = [...top[dimension as keyof typeof NAMES]];
    return [name, isMasked && dimension === "ip" ? maskRows(rows) : rows];
  });
  return { from, to, total, sampled, top: Object.fromEntries(lists) as z.infer<typeof Evidence>["top"] };
}
