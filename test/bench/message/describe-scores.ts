import { isHostile, isLoneAddress, macroF1, type Scored, type ScoredCase } from "./score-messages.ts";
import { HALVES, type Half } from "./situations/situation.ts";

type Count = readonly [part: number, whole: number];

const NAME_CHARS = 28;
const HEAD = `${"situation".padEnd(NAME_CHARS)}truth          half     told  first s  first          30 min         right  page  alerts  msgs  false`;

/** Returns the table of the situations, then the summary of both halves beside each other. */
export function describeScores(scored: Scored, only?: Half): string {
  const halves = only === undefined ? HALVES : [only];
  return [...describeSituations(scored, halves), "", ...describeSummary(scored, halves), ""].join("\n");
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
  const told = all.filter(({ isTold }) => isTold);
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
  const told = cases.filter(({ isTold }) => isTold);
  const hostile = told.filter(({ label }) => isHostile(label));
  const of = (truth: string) => must.filter(({ label }) => label.truth === truth);
  const misfires = told.filter(({ label }) => label.truth === "misfire");
  const toldOf = (all: readonly ScoredCase[]): Count => [
    all.filter(({ isTold }) => isTold).length,
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
    ["told of those that must be", count(toldOf(must))],
    ...["attack", "scanner", "misfire", "broken-client", "crawler"].map((truth): [string, string] => [
      `  ${truth}`,
      count(toldOf(of(truth))),
    ]),
    ["second waves told", count(toldOf(cases.filter(({ label }) => label.wave !== null)))],
    [`one address, under 15 rules`, count(toldOf(cases.filter(({ label }) => isLoneAddress(label))))],
    ["told on a zone's first day", count(toldOf(cases.filter(({ label }) => label.firstDay)))],
    ["seconds to the first, median", show(medianOf(hostile.flatMap(({ seconds }) => seconds ?? [])), 0)],
    [
      "  90 of 100 hostile",
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
    ["alerts per told case", show(meanOf(told.map(({ alerts }) => alerts)), 2)],
    ["messages per told case", show(meanOf(told.map(({ messages }) => messages)), 2)],
    ["false alerts per zone-day", show(perDay(zones.reduce((sum, one) => sum + one.falseAlerts, 0)), 3)],
    ["false pages per zone-day", show(perDay(zones.reduce((sum, one) => sum + one.falsePages, 0)), 3)],
    ["zone-days", show(days, 0)],
  ];
}

function describeSummary(scored: Scored, halves: readonly Half[]): string[] {
  const columns = halves.map((half) =>
    figuresOf({
      cases: scored.cases.filter(({ label }) => label.half === half),
      zones: scored.zones.filter(({ label }) => label.half === half),
    }),
  );
  const title = `${"".padEnd(32)}${halves.map((half) => half.padEnd(14)).join("")}`.trimEnd();
  const lines = (columns[0] ?? []).map(([name], row) =>
    `${name.padEnd(32)}${columns.map((column) => (column[row]?.[1] ?? "").padEnd(14)).join("")}`.trimEnd(),
  );
  return [title, ...lines];
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
