/** The days, lists of rules and reading of classified requests that the operations of a plan share. */
import { z } from "zod";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import type { Classified } from "#archive/rules/sql/classify-requests.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { priceSearch, type SearchDeps } from "#archive/search/searching.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { DAY_MS } from "#lib/units.ts";
import type { QueryContext } from "#operations/operation.ts";
import { requireZone } from "#operations/require-known.ts";
import { readRequests } from "./read-requests.ts";

/** A plan is made from the days 30 to 8, and its figures are of the last seven. */
export const PLANNED_DAYS = 30;
const JUDGED_DAYS = 7;

export const RuleList = z
  .string()
  .max(4_000)
  .transform((text) =>
    text
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== ""),
  )
  .meta({ wire: { type: "string" } });

export const ExclusionList = z
  .string()
  .max(8_000)
  .transform((text, context) =>
    text.split(",").flatMap((one) => {
      const [, rule = "", path = ""] = /^\s*([^@]+)@(\/.*)$/s.exec(one) ?? [];
      if (rule === "")
        context.addIssue({ code: "custom", message: "must be rules with paths, such as 942100@/checkout" });
      return rule === "" ? [] : [{ rule, path: templateOf(path) }];
    }),
  )
  .meta({ wire: { type: "string" } });

type ReadRows = (write: (classified: Classified) => Piece) => ReturnType<typeof readRequests>;

/** Returns the days of a plan (numbers since the epoch, `to` exclusive), and a function that reads once it is the caller's turn. */
export async function openReview(asked: QueryContext, zone: number) {
  const { db, caller, now, searching, signal, service } = asked;
  await requireZone(asked, zone);
  const today = Math.floor(now / DAY_MS);
  const [first, split] = [today - PLANNED_DAYS + 1, today - JUDGED_DAYS + 1];
  const days = { learn: { from: first, to: split }, judge: { from: split, to: today + 1 } };
  const span = { from: first * DAY_MS, to: now };
  const { knownSources } = service.alerting().detection;
  const of = { zoneId: zone, span, knownSources, actions: searching.ocsf.actions };
  const plan = planSearch({
    ...span,
    query: "",
    filters: [],
    groupBy: ["ip"],
    buckets: 0,
    page: 0,
    pageSize: 1,
  });
  const price = await priceSearch(db, searching, { zoneId: zone, plan, isMasked: caller.masked });
  const read = <Found>(
    work: (deps: SearchDeps, readRows: ReadRows, stopped: AbortSignal) => Promise<Found>,
  ) =>
    searching.runInPlace({ caller }, { ...price, signal }, (deps, stopped) =>
      work(deps, (write) => readRequests(deps, of, { write }, stopped), stopped),
    );
  return { days, read };
}
