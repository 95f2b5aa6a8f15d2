import { z } from "zod";
import { countOnPath, listExclusions } from "#db/detection/exclusions.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { toUrlPattern } from "#stages/detection/exclusion/to-url-pattern.ts";
import { describeClause } from "#stages/detection/exclusion/write-forms.ts";
import { IsoTime, pageOf, Text, toIso, toIsoOrNull, visibleZones, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";

/** More than zones have rules that misfire. */
const MOST = 200;

const Item = z
  .object({
    id: z.number().int(),
    zone: z.number().int(),
    spikeId: z.number().int().nullable().describe("The latest spike that it was proposed for."),
    clause: Text.describe("The exclusion in words."),
    ruleIds: z.array(Text),
    template: Text.nullable(),
    method: Text.nullable(),
    parameter: Text.nullable(),
    proposedAt: IsoTime,
    followedAt: IsoTime.nullable().describe(
      "The rule's last event on the path, if somebody seems to have applied it.",
    ),
    today: z
      .object({ events: z.number().int(), suspicious: z.number().int() })
      .nullable()
      .describe(
        "Events of other rules on the path within 24 hours, and those of addresses with three or more rules elsewhere. Null if it was not followed.",
      ),
  })
  .meta({ id: "Exclusion" });

export const listProposed = defineQuery({
  name: "exclusion.list",
  summary: "List proposed exclusions, newest first, and watch those that were followed",
  description: `Lists at most ${MOST}. Longwatch applies no exclusion: one counts as followed if its rule went quiet on the path.`,
  http: ["GET", "/api/v1/exclusions"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId.optional() }),
  output: pageOf(Item),
  command: {
    examples: ["exclusion list --zone 101"],
    columns: [
      { head: "ZONE", get: ({ zone }) => String(zone) },
      { head: "EXCLUSION", get: ({ clause }) => toLine(clause, 200) },
      { head: "PROPOSED (UTC)", get: ({ proposedAt }) => showTime(Date.parse(proposedAt)) },
      {
        head: "FOLLOWED (UTC)",
        get: ({ followedAt }) => (followedAt === null ? "-" : showTime(Date.parse(followedAt))),
      },
      { head: "TODAY", get: ({ today }) => (today === null ? "-" : formatWhole(today.events)) },
      { head: "SUSPICIOUS", get: ({ today }) => (today === null ? "-" : formatWhole(today.suspicious)) },
    ],
    empty: "No exclusion was proposed.",
  },
  run: async ({ db, caller, now }, { zone }) => {
    const rows = await listExclusions(db, visibleZones(caller, zone), MOST);
    const items = [];
    for (const { id, zoneId, spikeId, clause, proposedAt, followedAt } of rows) {
      const today =
        followedAt === null ? null : await countOnPath(db, { zoneId, clause }, { nowMs: now, toUrlPattern });
      const shown = { id, zone: zoneId, spikeId, clause: describeClause(clause), ...clause, today };
      items.push({ ...shown, proposedAt: toIso(proposedAt), followedAt: toIsoOrNull(followedAt) });
    }
    return { items, next: null };
  },
});
