import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { firstListedDay, horizonAt, KEPT_MS } from "./horizon.ts";
import type { Span } from "./span.ts";

/** The longest span of a run that is started over the API. */
export const MAX_RUN_DAYS = 31;

/** Returns the mistakes of a backfill's span: the name of the end, and the rule that it breaks. */
export function findReachFaults(
  { from, to, route }: Span & { readonly route: string },
  now: number,
): { readonly field: "from" | "to"; readonly rule: string }[] {
  const listed = firstListedDay(now);
  // The moment that is named must still be valid when a person has typed it.
  const kept = Math.ceil(horizonAt(now) / MINUTE_MS) * MINUTE_MS;
  return [
    ...(to > now ? [{ field: "to" as const, rule: `now (${showIso(now)}) or earlier` }] : []),
    ...(from < now - KEPT_MS
      ? [
          {
            field: "from" as const,
            rule: `${showIso(kept)} or later: the platform keeps events for 72 hours`,
          },
        ]
      : route === "list" && from < listed
        ? [
            {
              field: "from" as const,
              rule: `${showIso(listed)} or later: the list serves today and the two UTC days before`,
            },
          ]
        : []),
  ];
}

/** Returns a mistake if the span is empty, or too long for a run over the API. */
export function findLengthFault({
  from,
  to,
}: Span): { readonly field: "from" | "to"; readonly rule: string } | null {
  if (to <= from) return { field: "to", rule: `after from, ${showIso(from)}` };
  const days = Math.ceil((to - from) / DAY_MS);
  return days > MAX_RUN_DAYS
    ? {
        field: "from",
        rule: `at most ${MAX_RUN_DAYS} days before to, but is ${days} days before it`,
      }
    : null;
}

/** Returns the time in whole seconds, as a person types it: `2026-11-21T14:00:00Z`. */
export function showIso(at: number): string {
  return new Date(Math.floor(at / 1_000) * 1_000).toISOString().replace(".000Z", "Z");
}
