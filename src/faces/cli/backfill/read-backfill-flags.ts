import { BACKFILL_ROUTES, type BackfillRoute } from "#model/kinds.ts";
import { findReachFaults } from "#model/run-span.ts";
import type { Span } from "#model/span.ts";
import type { AskedBackfill } from "#operations/backfill/plan-backfill.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";

export interface BackfillFlags extends SpanFlags {
  readonly route?: string;
  readonly restart?: true;
  readonly json?: true;
}

export const ROUTES = ["auto", ...BACKFILL_ROUTES] as const;
/** Reads the flags. Notes every mistake, including a span whose start the platform has already forgotten. */
export function readBackfillFlags(read: FlagReader, flags: BackfillFlags, now: number): AskedBackfill {
  const zoneId = readZone(read, flags, true) ?? 0;
  const span = readSpan(read, flags);
  const route = ROUTES.find((name) => name === (flags.route ?? "auto"));
  if (route === undefined) read.wrong("route", flags.route, `one of ${ROUTES.join(", ")}`);
  if (read.mistakes.length === 0) checkReach(read, flags, { ...span, route: route ?? "auto", now });
  return { zoneId, ...span, route: route ?? "auto" };
}

interface Reach extends Span {
  readonly route: BackfillRoute | "auto";
  readonly now: number;
}

function checkReach(read: FlagReader, flags: SpanFlags, { now, ...asked }: Reach): void {
  for (const { field, rule } of findReachFaults(asked, now)) read.wrong(field, flags[field], rule);
}
