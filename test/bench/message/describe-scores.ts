import { z } from "zod";
import type { Labels } from "./labels.ts";
import { isHostile, isLoneAddress, macroF1, type Scored, type ScoredCase } from "./score-messages.ts";
import { HALVES, type Half } from "./situations/situation.ts";

type Count = readonly [part: number, whole: number];

const NAME_CHARS = 28;
const HEAD = `${"situation".padEnd(NAME_CHARS)}truth          half     told  first s  first          30 min         right  page  alerts  msgs  false`;

/** A world that was replayed, and what its messages are worth. */
export interface ScoredWorld {
  readonly labels: Labels;
  readonly scored: Scored;
}

/** Returns the table of each world's situations, then the summary of worlds and halves beside each other. */
export function describeScores(worlds: readonly ScoredWorld[], only?: Half): string {
  const halves = only === undefined ? HALVES : [only];
  const tables = worlds.flatMap(({ labels, scored }) => [
    describeWorld(labels),
    "",
    ...describeSituations(scored, halves),
    "",
  ]);
  return [...tables, ...tableOf(toFigures(worlds, halves)), ""].join("\n");
}

/** Returns the lines of a summary, its columns beside each other. */
export function tableOf({ columns, rows }: Omit<Figures, "worlds">): string[] {
  return [["", ...columns], ...rows].map(([name = "", ...cells]) =>
    `${name.padEnd(32)}${cells.map((cell) => cell.padEnd(18)).join("")}`.trimEnd(),
  );
}

function describeWorld({ world, seed, repeats, zones }: Labels): string {
  const events = zones.reduce((sum, zone) => sum + zone.events, 0);
  return `world ${world}, seed ${seed}: ${zones.length / repeats} situations ${repeats === 1 ? "once" : `${repeats} times`}, ${events} events`;
}

/** The summary as it is kept: a column for each half of each world, a row for each figure. */
export const Figures = z.strictObject({
  worlds: z.array(z.string()).min(1),
  columns: z.array(z.string()).min(1),
  rows: z.array(z.array(z.string()).min(2)).min(1),
});
export type Figures = z.output<typeof Figures>;

/** Returns the summary of worlds and halves beside each other. */
export function toFigures(worlds: readonly ScoredWorld[], halves: readonly Half[] = HALVES): Figures {
  const all = worlds.flatMap((one) => halves.map((half) => ({ ...one, half })));
  const figures = all.map(({ scored, half }) =>
    figuresOf({
      cases: scored.cases.filter(({ label }) => label.half === half),
      zones: scored.zones.filter(({ label }) => label.half === half),
    }),
  );
  return {
    worlds: worlds.map(({ labels }) => describeWorld(labels)),
    columns: all.map(({ labels, half }) => `${labels.world}, ${half}`),
    rows: (figures[0] ?? []).map(([name], row) => [name, ...figures.map((one) => one[row]?.[1] ?? "")]),
  };
}

const [BEGIN, END] = ["<!-- bench:message -->", "<!-- /bench:message -->"];

/**
 * Returns the page with the summary between its markers.
 * @throws {Error} if the page lacks one of the markers.
 */
export function withFigures(page: string, { worlds, columns, rows }: Figures): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin === -1 || end < begin) throw new Error(`the page must have the markers ${BEGIN} and ${END}`);
  const table = [["", ...columns], ["---", ...columns.map(() => "---")], ...rows]
    .map(([name = "", ...cells]) => `| ${[name.trim(), ...cells].join(" | ")} |`)
    .join("\n");
  return `${page.slice(0, begin + BEGIN.length)}\n\n${worlds.map((world) => `- ${world}`).join("\n")}\n\n${table}\n\n${page.slice(end)}`;
}

function describeSituations({ cases, zones }: Scored, halves: readonly Half[]): string[] {
  const names = (one: ScoredCase) => one.label.case.replace(/#\d+$/, "");
  const rows = [...Map.groupBy(cases, names)].map(([name, all]) => ({ name, all, half: all[0]?.label.half }));
  const quiet = [...Map.groupBy(zones, ({ label }) => label.situation)].map(([name, all]) => ({ name, all }));
  const falseOf = new Map(
    quiet.map(({ name, all }) => [name, all.reduce((sum, one) => sum + one.falseAlerts, 0)]),
  );
  const shown = rows.filter(({ half }) => half !== undefined && halves.includes(half));
  const told = new Set(shown.map(({ name }) => name));
  const rest = quiet
    .filter(({ name, all }) => !told.has(name) && all[0] !== undefined && halves.includes(all[0].label.half))
    .filter(({ name }) => !rows.some((row) => row.name === name));
  return [
    HEAD,
    ...shown.map(({ name, all }) => describeRow(name, all, falseOf.get(name))),
    ...rest.map(
      ({ name, all }) =>
        `${name.padEnd(NAME_CHARS)}${"nothing".padEnd(15)}${all[0]?.label.half.padEnd(9)}${" ".repeat(69)}${String(falseOf.get(name)).padStart(5)}`,
    ),
  ];
}

function describeRow(name: string, all: readonly ScoredCase[], falseAlerts: number | undefined): string {
  const [one] = all;
  if (one === undefined) return name;
  const told = all.filter(({ isNotified }) => isNotified);
  const sum = (of: (each: ScoredCase) => number) => String(all.reduce((total, each) => total + of(each), 0));
  const said = (of: (each: ScoredCase) => string | null) =>
    [...new Set(told.map((each) => shorten(of(each))))].join("/").slice(0, 14).padEnd(15);
  const cells = [
    `${told.length}/${all.length}${one.label.tell === "may" ? "*" : " "}`.padStart(5),
    ` ${show(medianOf(told.flatMap(({ seconds }) => seconds ?? [])), 0).padStart(7)}  `,
    said(({ first }) => first),
    said(({ later }) => later),
    sum(({ isLaterRight }) => Number(isLaterRight)).padStart(5),
    sum(({ isPaged }) => Number(isPaged)).padStart(6),
    sum(({ alerts }) => alerts).padStart(8),
    sum(({ messages }) => messages).padStart(6),
    String(falseAlerts ?? "").padStart(7),
  ];
  return `${name.padEnd(NAME_CHARS)}${one.label.truth.padEnd(15)}${one.label.half.padEnd(8)}${cells.join("")}`;
}

const shorten = (word: string | null) => (word === "broken-client" ? "broken" : (word ?? "-"));

/** The lines of the summary: what is counted, over which cases. */
function figuresOf({ cases, zones }: Scored): [string, string][] {
  const must = cases.filter(({ label }) => label.tell === "must" && !label.firstDay);
  const told = cases.filter(({ isNotified }) => isNotified);
  const hostile = told.filter(({ label }) => isHostile(label));
  const of = (truth: string) => must.filter(({ label }) => label.truth === truth);
  const misfires = told.filter(({ label }) => label.truth === "misfire");
  const toldOf = (all: readonly ScoredCase[]): Count => [
    all.filter(({ isNotified }) => isNotified).length,
    all.length,
  ];
  const rightOf = (all: readonly ScoredCase[], look: "isFirstRight" | "isLaterRight"): Count => [
    all.filter((one) => one[look]).length,
    all.length,
  ];
  const days = zones.reduce((sum, one) => sum + one.days, 0);
  const perDay = (count: number) => (days === 0 ? null : count / days);
  const noPage = told.filter(({ label }) => label.page === "no");
  return [
    ["cases", String(cases.length)],
    ["notified, of those that must be", count(toldOf(must))],
    ...["attack", "scanner", "misfire", "broken-client", "crawler"].map((truth): [string, string] => [
      `  ${truth} notified`,
      count(toldOf(of(truth))),
    ]),
    ["second waves notified", count(toldOf(cases.filter(({ label }) => label.wave !== null)))],
    [`one address, under 15 rules`, count(toldOf(cases.filter(({ label }) => isLoneAddress(label))))],
    ["notified on a zone's first day", count(toldOf(cases.filter(({ label }) => label.firstDay)))],
    ["seconds to the first, median", show(medianOf(hostile.flatMap(({ seconds }) => seconds ?? [])), 0)],
    [
      "seconds to the first, 90 of 100",
      show(
        quantileOf(
          hostile.flatMap(({ seconds }) => seconds ?? []),
          0.9,
        ),
        0,
      ),
    ],
    ["verdict right, first message", count(rightOf(told, "isFirstRight"))],
    ["verdict right, 30 minutes", count(rightOf(told, "isLaterRight"))],
    ["macro-F1, first message", show(macroF1(told, "first"), 3)],
    ["macro-F1, 30 minutes", show(macroF1(told, "later"), 3)],
    ["misfires right, first message", count(rightOf(misfires, "isFirstRight"))],
    ["misfires right, 30 minutes", count(rightOf(misfires, "isLaterRight"))],
    [
      "hostile called misfire ever",
      count([hostile.filter(({ isCalledMisfire }) => isCalledMisfire).length, hostile.length]),
    ],
    [
      "misfires that reach critical",
      count([misfires.filter(({ isCritical }) => isCritical).length, misfires.length]),
    ],
    ["paged that must not be", count([noPage.filter(({ isPaged }) => isPaged).length, noPage.length])],
    [
      "attacks that begin as info",
      count([hostile.filter(({ beginsAsInfo }) => beginsAsInfo).length, hostile.length]),
    ],
    ["alerts per notified case", show(meanOf(told.map(({ alerts }) => alerts)), 2)],
    ["messages per notified case", show(meanOf(told.map(({ messages }) => messages)), 2)],
    ["false alerts per zone-day", show(perDay(zones.reduce((sum, one) => sum + one.falseAlerts, 0)), 3)],
    ["false pages per zone-day", show(perDay(zones.reduce((sum, one) => sum + one.falsePages, 0)), 3)],
    ["zone-days", show(days, 0)],
  ];
}

const count = ([part, whole]: Count) => `${part} of ${whole}`;
const show = (value: number | null, digits: number) => (value === null ? "-" : value.toFixed(digits));
const medianOf = (values: readonly number[]) => quantileOf(values, 0.5);
const meanOf = (values: readonly number[]) =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

function quantileOf(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
}
