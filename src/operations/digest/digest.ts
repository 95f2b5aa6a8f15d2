import { z } from "zod";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { digestLine, weekFigures } from "#model/weekly-digest.ts";
import { describeWeek } from "#stages/alerting/message/describe-week.ts";
import { lastWeek } from "#stages/alerting/message/weekly-message.ts";
import { Name } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { readWeek } from "./read-week.ts";

const RULE = "must be a day (2026-11-16) of a week that is over";

export const showDigest = defineQuery({
  name: "digest.show",
  summary: "Show the digest of a week",
  description:
    "What was proven, what changed, how alerts were handled, and what will need a hand. A week lasts from Monday to Monday, UTC. Holds no addresses.",
  http: ["GET", "/api/v1/digest"],
  tag: "Service",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    week: z.iso.date(RULE).optional().describe("A day of the week. Default: the last week that is over."),
  }),
  output: weekFigures
    .extend({
      rows: z.array(z.object({ label: Name, lines: z.array(digestLine) })).describe("The same in words."),
    })
    .meta({ id: "Digest" }),
  command: {
    name: "",
    examples: ["digest", "digest --week 2026-11-16", "digest --json"],
    help: "The channels that the configuration file names under digest get the same on Mondays (docs/routing.md).",
    say: ({ from, to, rows }) => {
      const lines = rows.flatMap(({ label, lines }) =>
        lines.map(({ text }, index) => `${(index === 0 ? label : "").padEnd(14)}${toLine(text, 500)}\n`),
      );
      return [`Week of ${from}, until ${to} 00:00 UTC\n`, ...lines].join("");
    },
  },
  run: async (asked, { week }) => {
    const span = lastWeek(week === undefined ? asked.now : Date.parse(week) + 7 * DAY_MS);
    if (span.toMs > asked.now || span.fromMs < 0)
      throw new Refusal(422, { mistakes: [{ field: "week", value: week ?? "", rule: RULE }] });
    const figures = await readWeek(asked, span);
    return { ...figures, rows: describeWeek(figures, asked.zones()) };
  },
});
