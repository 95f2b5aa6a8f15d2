import type { SearchPlan } from "#stages/archive/query/plan-search.ts";

/** The parts of a plan that an audit entry is about. */
export type ExportPlan = Pick<SearchPlan, "from" | "to" | "clauses" | "methodClauses">;

interface Exported {
  readonly plan: ExportPlan;
  readonly isMasked: boolean;
}

/**
 * Returns the audit entry of an export: the actor, the zone and the time range. Of the filters the entry has only the
 * fields: their texts may be addresses, and the entry outlives every erasure.
 */
export function describeExport(actor: string, zoneId: number, { plan, isMasked }: Exported) {
  const details = {
    from: new Date(plan.from).toISOString(),
    to: new Date(plan.to).toISOString(),
    filteredBy: [
      ...new Set(plan.clauses.flatMap(({ columns }) => columns)),
      ...(plan.methodClauses.length > 0 ? ["method"] : []),
    ],
    isMasked,
  };
  return { actor, action: "events.exported", subject: `zone ${zoneId}`, details };
}
