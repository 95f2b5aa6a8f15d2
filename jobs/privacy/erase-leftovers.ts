import { z } from "zod";
import { type AnyJob, defineJob } from "#adapters/queue/define-job.ts";
import type { Database } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { eraseSourceUsual } from "#db/privacy/erase-source-usual.ts";
import { rewriteDerived } from "#db/privacy/rewrite-derived.ts";
import { readTombstones } from "#db/privacy/tombstones.ts";
import type { Clock } from "#lib/clock.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { readSender } from "#stages/privacy/erasure-target.ts";
import { ERASED, NETWORK_PREFIX } from "#stages/privacy/pseudonym.ts";
import { replaceAddresses, replaceInJson } from "#stages/privacy/replace-addresses.ts";

/** A job writes what it derived from events within this time of reading them. */
const WRITING_MS = HOUR_MS / 4;

export interface EraseLeftoversDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly erasures: Pick<ErasureGuard, "judge">;
}

/**
 * Erases data that the service derived from events around an erasure, repeatedly for a day: evidence that was
 * collected before the erasure and written after it would keep an address. Data derived from later events stays. Does
 * nothing while the pseudonym key is missing. Several replicas may run this at once.
 */
export function createEraseLeftoversJob({ database, clock, erasures }: EraseLeftoversDeps): AnyJob {
  return defineJob({
    name: "erase-leftovers",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 300_000,
    async run() {
      const tombstones = await readTombstones(database.db, clock() - DAY_MS);
      for (const tombstone of tombstones) {
        const { zoneId, requestedAt, untilAt } = tombstone;
        const judge = await erasures.judge([tombstone]);
        // The next run comes in minutes, and another job raises the alert about the missing key.
        if (judge === null) return "the pseudonym key is missing";
        const { match } = judge;
        // The tombstone does not say in which network of 64 bits its address is, so every such sender is erased.
        const isNarrow = tombstone.family === 6 && tombstone.prefix > NETWORK_PREFIX[6];
        const isErased = (ip: string) => match(ip) !== null || (isNarrow && readSender(ip) !== null);
        const replace = (ip: string) => (isErased(ip) ? ERASED : null);
        await eraseSourceUsual(database.db, zoneId, (ip) => match(ip) !== null);
        const writtenIn = { from: requestedAt - HOUR_MS, to: Math.max(requestedAt, untilAt) + WRITING_MS };
        await rewriteDerived(
          database,
          { zoneId, writtenIn },
          {
            json: (value) => replaceInJson(value, replace, { dropTraits: true }),
            text: (text) => replaceAddresses(text, replace),
            write: true,
          },
        );
      }
      return tombstones.length === 0 ? "nothing was erased in the last day" : undefined;
    },
  });
}
