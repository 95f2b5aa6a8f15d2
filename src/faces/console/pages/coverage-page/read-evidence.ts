/** The count of one hour that a route showed, and when. */
export interface Look {
  readonly route: string;
  readonly count: number;
  readonly at: string | null;
  readonly since: string | null;
}

const ROUTES = { search: "the search", list: "the date-paged list", counts: "the counts by rule" } as const;

/** Reads the looks of an hour's evidence. Its form belongs to the service, so that what is not understood is left out. */
export function readEvidence(evidence: unknown): Look[] {
  return Object.entries(ROUTES).flatMap(([name, route]) => {
    const look = memberOf(evidence, name);
    const count = memberOf(look, "count");
    if (typeof count !== "number") return [];
    return [{ route, count, at: timeOf(look, "at"), since: timeOf(look, "since") }];
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function timeOf(look: unknown, name: string): string | null {
  const at = memberOf(look, name);
  return typeof at === "string" && !Number.isNaN(Date.parse(at)) ? at : null;
}
