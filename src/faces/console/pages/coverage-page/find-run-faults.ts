import { showIso } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { findLengthFault, findReachFaults } from "#model/horizon.ts";
import type { RunKind } from "#model/kinds.ts";

type Ends<End> = Readonly<Record<"from" | "to", End>>;

/** Mistake in each field of the form; null if none is known. */
export type RunFaults = Ends<string | null> & { readonly zone: string | null };

interface Known {
  /** The service's clock, epoch ms. */
  readonly nowMs: number;
  /** The first hour that is watched, epoch ms; null if it is not known. */
  readonly firstHourMs: number | null;
  /** The archive days of the zone; null if there are none. */
  readonly archived: { readonly firstDay: string; readonly lastDay: string } | null;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;

/** Returns what the service would refuse, as far as the page knows it, so that it is said before anything is sent. */
export function findRunFaults(
  { kind, from, to }: Ends<string> & { readonly kind: RunKind },
  known: Known,
): RunFaults {
  const span = { from: readTime(from), to: readTime(to) };
  const form = "must be an ISO 8601 time with a UTC offset, such as 2026-11-21T14:00:00Z";
  const faults = {
    zone: null,
    from: Number.isNaN(span.from) ? form : null,
    to: Number.isNaN(span.to) ? form : null,
  };
  if (faults.from !== null || faults.to !== null) return faults;
  // Of each field, only its first fault is shown.
  const found = [
    ...(kind === "backfill" ? findReachFaults({ ...span, route: "auto" }, known.nowMs) : []),
    ...(kind === "verify" ? findVerifyFaults(span, known) : []),
    ...(kind === "verify-archive" ? findArchiveFaults(span, known.archived) : []),
    findLengthFault(span),
  ].filter((fault) => fault !== null);
  const ruleOf = (field: keyof RunFaults) => found.find((fault) => fault.field === field)?.rule ?? null;
  const must = (rule: string | null) => (rule === null ? null : `must be ${rule}`);
  return { zone: ruleOf("zone"), from: must(ruleOf("from")), to: must(ruleOf("to")) };
}

interface Fault {
  readonly field: keyof RunFaults;
  readonly rule: string;
}

function findVerifyFaults({ to }: Ends<number>, { nowMs, firstHourMs }: Known): Fault[] {
  if (to > nowMs) return [{ field: "to", rule: `now (${showIso(nowMs)}) or earlier` }];
  if (firstHourMs === null || to > firstHourMs) return [];
  return [{ field: "to", rule: `after ${showIso(firstHourMs)}: Longwatch has no earlier hour of the zone` }];
}

/** The whole of each UTC day that the span touches is read. */
function findArchiveFaults({ from, to }: Ends<number>, archived: Known["archived"]): Fault[] {
  if (archived === null) return [{ field: "zone", rule: "has no archive day yet" }];
  const [firstMs, endMs] = [Date.parse(archived.firstDay), Date.parse(archived.lastDay) + DAY_MS];
  const faults: Fault[] = [];
  if (to <= firstMs) faults.push({ field: "to", rule: `after ${showIso(firstMs)}, the first archive day` });
  if (from >= endMs)
    faults.push({ field: "from", rule: `before ${showIso(endMs)}, the end of the last archive day` });
  return faults;
}

function readTime(text: string): number {
  return TIME.test(text) ? Date.parse(text) : Number.NaN;
}
