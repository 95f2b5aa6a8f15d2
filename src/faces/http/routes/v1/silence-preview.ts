import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAlerts, type ReportedAlert } from "#db/alerting/alert-reports.ts";
import { DAY_MS } from "#lib/units.ts";
import { known } from "#operations/fields.ts";
import { readMatchers, WantedMatchers } from "#operations/silences/silence.ts";
import { wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { AlertItem } from "./alert-schemas.ts";
import type { ApiDeps } from "./api-deps.ts";
import { readAlertView, toAlertItem } from "./to-alert-item.ts";

const MAX_ALERTS = 10_000;
const MAX_SHOWN = 100;
const WEEK_MS = 7 * DAY_MS;

const Muted = z.object({
  count: z.number().int(),
  items: z.array(AlertItem).describe(`The newest ${MAX_SHOWN}.`),
});

export const SilencePreview = z
  .object({
    now: Muted.describe("The unresolved alerts that the silence would mute now."),
    lastWeek: Muted.describe(
      "The alerts that fired in the last seven days and match, resolved ones as well.",
    ),
  })
  .meta({ id: "SilencePreview" });

/** `POST /api/v1/silences/preview`: what a silence would mute, before anybody makes it. */
export function addSilencePreview(app: FastifyInstance, { archive, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/silences/preview",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Silences"],
        summary: "Show which alerts a silence would mute now and would have muted in the last week",
        description: "Only alerts that the key may see are counted. Nothing is stored.",
        body: z.strictObject({ matchers: WantedMatchers }),
        response: { 200: SilencePreview },
      },
    },
    async ({ body, caller }) => {
      const asking = known(caller);
      const { zoneIds, masked } = asking;
      const matchers = readMatchers(body.matchers, asking);
      const view = await readAlertView(archive, masked, clock());
      const show = (rows: readonly ReportedAlert[]) => {
        const matching = rows.filter((row) => wouldMute(matchers, toSilencedAlert(row)));
        const items = matching.slice(0, MAX_SHOWN).map((row) => toAlertItem(row, view));
        return { count: matching.length, items };
      };
      const states = ["firing", "acknowledged"] as const;
      return {
        now: show(await listAlerts(archive, { states, zoneIds, limit: MAX_ALERTS })),
        lastWeek: show(await listAlerts(archive, { sinceMs: clock() - WEEK_MS, zoneIds, limit: MAX_ALERTS })),
      };
    },
  );
}
