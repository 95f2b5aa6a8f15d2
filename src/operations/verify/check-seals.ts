import { z } from "zod";
import { readCoverageHours } from "../../../db/coverage/coverage-report.ts";
import { readDoubledIds, readHourContents } from "../../../db/coverage/hour-contents.ts";
import { many } from "../../lib/progress-bar.ts";
import { HOUR_MS } from "../../lib/units.ts";
import type { Check, Checked, Difference } from "./check.ts";
import { showIds } from "./show-ids.ts";

/** The evidence of a seal, as this version and earlier versions write it. */
const Evidence = z.object({
  stored: z.object({ count: z.number(), ids: z.string() }).optional(),
  search: z.object({ lacks: z.object({ count: z.number() }).optional() }).nullish(),
  counts: z
    .object({ upstream: z.number().nullish(), stored: z.number().nullish(), count: z.number().optional() })
    .nullish(),
});

/**
 * Checks that each sealed hour still matches its seal: the same events, each once and with every dimension. The platform's
 * count at the seal must not be lower.
 */
export async function checkSeals({ db, zoneId, onStep, ...span }: Checked): Promise<Check> {
  const differences: Difference[] = [];
  const hours = await readCoverageHours(db, zoneId, span);
  const sealed = hours.filter(({ state }) => state === "sealed");
  for (const [index, { startsAt, evidence, storedCount }] of sealed.entries()) {
    onStep("seals", index / sealed.length);
    const read = Evidence.safeParse(evidence);
    const { stored, search, counts } = read.success ? read.data : {};
    const holds = await readHourContents(db, zoneId, startsAt);
    const found = (expected: number, count: number, detail: string | null) =>
      differences.push({ at: startsAt, ruleId: null, expected, found: count, detail });
    const sealedCount = stored?.count ?? counts?.stored ?? storedCount;
    if (holds.count !== sealedCount)
      found(sealedCount, holds.count, "another number of events than at the seal");
    else if (stored !== undefined && stored.ids !== holds.ids)
      found(stored.count, holds.count, "the same number of events as at the seal, but different events");
    const platform = counts?.upstream ?? counts?.count ?? null;
    if (platform !== null && platform < sealedCount && search?.lacks === undefined)
      found(platform, sealedCount, "sealed although the platform counted fewer events");
    const named = search?.lacks?.count ?? 0;
    if (holds.unresolved > named)
      found(holds.count - named, holds.count - holds.unresolved, "events without every dimension");
    const doubled = await readDoubledIds(db, zoneId, { fromMs: startsAt, toMs: startsAt + HOUR_MS });
    if (doubled.length > 0) found(0, doubled.length, showIds("stored with two different times:", doubled));
  }
  return {
    name: "seals",
    sides: ["its seal", "stored"],
    compared: many(sealed.length, "sealed hour"),
    differences,
    notes: [],
    failure: null,
  };
}
