import { z } from "zod";
import { type MarkedVerdict, readMarkedVerdicts } from "#db/detection/said-verdicts.ts";
import { formatShare, many } from "#lib/format.ts";
import { MARKS, VERDICT_LOOKS, VERDICTS } from "#model/kinds.ts";
import { Name, visibleZones, wholeNumber, ZoneId } from "../fields.ts";
import { type DrawTable, defineQuery } from "../operation.ts";

const count = z.number().int();

const Month = z.object({
  month: Name.describe("In UTC, such as 2026-11."),
  marked: count.describe("Marked alerts with a verdict."),
  reasoned: count.describe("Those whose mark is a reason: not noise."),
  right: count.describe("Those whose verdict is the mark."),
  attacks: count.describe("Those that were marked as attack."),
  attacksCalledMisfire: count,
  table: z
    .partialRecord(z.enum(MARKS), z.partialRecord(z.enum(VERDICTS), count))
    .describe("By mark, then by verdict. Pairs without an alert are left out."),
});
type Month = z.output<typeof Month>;

export const scoreVerdicts = defineQuery({
  name: "verdict.score",
  summary: "Compare verdicts with the marks of people, month by month",
  description: "An alert belongs to the month in which it opened.",
  http: ["GET", "/api/v1/verdicts/score"],
  tag: "Alerts",
  scope: "read",
  input: z.strictObject({
    months: wholeNumber(1, 24).default(3).describe("How many months, with the present one."),
    zone: ZoneId.optional(),
    look: z.enum(VERDICT_LOOKS).optional().describe("Only what was said at this look. Default: the latest."),
  }),
  output: z.object({ items: z.array(Month).describe("Newest first. Months without marks are left out.") }),
  command: {
    examples: ["verdict score", "verdict score --months 12 --look first --json"],
    help: "A row is what people marked, a column is what the verdict said. Noise is a mark without a reason: it is neither right nor wrong.",
    say: ({ items }, { table }) =>
      items.map((month) => sayMonth(month, table)).join("\n") || "No alert has a verdict and a mark.\n",
  },
  run: async ({ db, caller, now }, { months, zone, look }) => {
    const today = new Date(now);
    const sinceMs = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - months + 1);
    const rows = await readMarkedVerdicts(db, { sinceMs, zoneIds: visibleZones(caller, zone), look });
    const byMonth = Map.groupBy(rows, ({ openedAt }) => openedAt.toISOString().slice(0, 7));
    return { items: [...byMonth].map(toMonth).sort((a, b) => b.month.localeCompare(a.month)) };
  },
});

function toMonth([month, rows]: readonly [string, readonly MarkedVerdict[]]): Month {
  const table: Month["table"] = {};
  for (const { mark, said } of rows) {
    const row = (table[mark] ??= {});
    row[said] = (row[said] ?? 0) + 1;
  }
  return {
    month,
    marked: rows.length,
    reasoned: rows.filter(({ mark }) => mark !== "noise").length,
    right: rows.filter(({ mark, said }) => mark === said).length,
    attacks: rows.filter(({ mark }) => mark === "attack").length,
    attacksCalledMisfire: table.attack?.misfire ?? 0,
    table,
  };
}

function sayMonth(
  { month, marked, reasoned, right, attacks, table, ...rest }: Month,
  draw: DrawTable,
): string {
  const rows = MARKS.filter((mark) => table[mark] !== undefined).map((mark) => [
    mark,
    ...VERDICTS.map((said) => String(table[mark]?.[said] ?? 0)),
  ]);
  const share = reasoned === 0 ? "" : ` (${formatShare(right / reasoned)})`;
  return `${month}: ${many(marked, "marked alert")}, ${right} of ${reasoned} with a reason right${share}, ${rest.attacksCalledMisfire} of ${attacks} attacks called misfire
${draw(["MARKED", ...VERDICTS.map((said) => said.toUpperCase())], rows)}`;
}
