import type { BackfillRoute } from "../../../db/ingest/backfills.ts";
import { HOUR_MS } from "../../lib/units.ts";
import { firstListedDay } from "../../model/horizon.ts";
import type { Span } from "../../model/span.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-span.ts";

export interface BackfillFlags extends SpanFlags {
  readonly route?: string;
  readonly restart?: true;
  readonly json?: true;
}

export const ROUTES = ["auto", "list", "search", "export"] as const;
/** How long the platform keeps events; platform API spec 8. */
const KEPT_HOURS = 72;

interface AskedBackfill extends Span {
  readonly zoneId: number;
  readonly route: BackfillRoute | "auto";
}

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

function checkReach(read: FlagReader, flags: SpanFlags, { from, to, route, now }: Reach): void {
  const kept = now - KEPT_HOURS * HOUR_MS;
  const listed = firstListedDay(now);
  if (to > now) read.wrong("to", flags.to, `now (${iso(now)}) or earlier`);
  if (from < kept)
    read.wrong(
      "from",
      flags.from,
      `${iso(kept)} or later: the platform keeps events for ${KEPT_HOURS} hours`,
    );
  else if (route === "list" && from < listed)
    read.wrong(
      "from",
      flags.from,
      `${iso(listed)} or later: the list serves today and the two UTC days before`,
    );
}

function iso(at: number): string {
  return new Date(at).toISOString();
}
