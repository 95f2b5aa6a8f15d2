import { z } from "zod";
import type { HourContents } from "#model/covered-hour.ts";

/** What is compared of the evidence of a seal. */
const Evidence = z.object({
  stored: z.object({ count: z.number(), ids: z.string() }).optional(),
  search: z.object({ lacks: z.object({ count: z.number() }).optional() }).nullish(),
  counts: z
    .object({ count: z.number().optional(), lacks: z.object({ count: z.number() }).optional() })
    .nullish(),
});

/** A contradiction between a seal and the stored events. */
interface SealFault {
  /** The number by the seal, and the number that contradicts it. */
  readonly expected: number;
  readonly found: number;
  /** The contradiction in words. */
  readonly text: string;
}

/**
 * Returns why the seal of an hour does not hold; empty for a good seal. The hour must hold the same events as at the
 * seal, each with every dimension, and the platform's count at the seal must not be lower. Log ids under two times
 * are not looked for.
 */
export function findSealFaults(
  { evidence, storedCount }: { readonly evidence: unknown; readonly storedCount: number },
  holds: HourContents,
): SealFault[] {
  const read = Evidence.safeParse(evidence);
  const { stored, search, counts } = read.success ? read.data : {};
  const faults: SealFault[] = [];
  const sealedCount = stored?.count ?? storedCount;
  if (holds.count !== sealedCount)
    faults.push({
      expected: sealedCount,
      found: holds.count,
      text: "another number of events than at the seal",
    });
  else if (stored !== undefined && stored.ids !== holds.ids)
    faults.push({
      expected: stored.count,
      found: holds.count,
      text: "the same number of events as at the seal, but different events",
    });
  const platform = counts?.count ?? null;
  if (
    platform !== null &&
    platform + (counts?.lacks?.count ?? 0) < sealedCount &&
    search?.lacks === undefined
  )
    faults.push({
      expected: platform,
      found: sealedCount,
      text: "sealed although the platform counted fewer events",
    });
  const named = search?.lacks?.count ?? 0;
  if (holds.unresolved > named)
    faults.push({
      expected: holds.count - named,
      found: holds.count - holds.unresolved,
      text: "events without every dimension",
    });
  return faults;
}
