import { z } from "zod";
import { listAlerts, type ReportedAlert } from "#db/alerting/alert-reports.ts";
import { DAY_MS } from "#lib/units.ts";
import { UNRESOLVED_STATES } from "#model/kinds.ts";
import { wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { Alert, readAlertView, toAlert } from "../alerts/alert.ts";
import { defineQuery } from "../operation.ts";
import { readMatchers, WantedMatchers } from "./silence.ts";

const MAX_ALERTS = 10_000;
const MAX_SHOWN = 100;
const WEEK_MS = 7 * DAY_MS;

const Muted = z.object({
  count: z.number().int(),
  items: z.array(Alert).describe(`The newest ${MAX_SHOWN}.`),
});

export const previewSilence = defineQuery({
  name: "silences.preview",
  summary: "Show which alerts a silence would mute now and would have muted in the last week",
  description: "Only alerts that the key may see are counted. Nothing is stored.",
  http: ["POST", "/api/v1/silences/preview"],
  tag: "Silences",
  scope: "read",
  refuses: [422],
  input: z.strictObject({ matchers: WantedMatchers }),
  output: z
    .object({
      now: Muted.describe("The unresolved alerts that the silence would mute now."),
      lastWeek: Muted.describe(
        "The alerts that fired in the last seven days and match, resolved ones as well.",
      ),
    })
    .meta({ id: "SilencePreview" }),
  example: { matchers: { zone: [101], rule: ["942*"] } },
  run: async ({ db, caller, now }, input) => {
    const { zoneIds } = caller;
    const matchers = readMatchers(input.matchers, caller);
    const view = await readAlertView(db, now);
    const show = (rows: readonly ReportedAlert[]) => {
      const matching = rows.filter((row) => wouldMute(matchers, toSilencedAlert(row)));
      return {
        count: matching.length,
        items: matching.slice(0, MAX_SHOWN).map((row) => toAlert(row, view)),
      };
    };
    return {
      now: show(await listAlerts(db, { states: UNRESOLVED_STATES, zoneIds, limit: MAX_ALERTS })),
      lastWeek: show(await listAlerts(db, { sinceMs: now - WEEK_MS, zoneIds, limit: MAX_ALERTS })),
    };
  },
});
