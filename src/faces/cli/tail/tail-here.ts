import type { Config } from "#config/config.ts";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import { searchOnward } from "#db/search/open-rows.ts";
import { LAST_MS } from "#lib/units.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { requireZones } from "../options/require-known.ts";
import { onRunningStore } from "../store/follow.ts";
import type { TailSource } from "./tail-source.ts";

const POLL_MS = 1_000;
const PAGE_SIZE = 500;

/** Reads the events from the database of the running service. */
export function tailHere(
  readConfig: () => Config,
  { clauses }: Pick<SearchPlan, "clauses">,
  zoneIds: readonly number[],
): TailSource {
  return {
    name: "database",
    pauseMs: () => POLL_MS,
    async open(_signal, work) {
      const config = readConfig();
      await onRunningStore(config, async ({ db }) => {
        await requireZones(db, config, zoneIds);
        await work({
          readOnward: (zoneId, from, after) =>
            searchOnward(db, zoneId, { from, to: LAST_MS, clauses, after, limit: PAGE_SIZE }),
          listZones: async () => (await listKnownZones(db)).map(({ zoneId }) => zoneId),
        });
      });
    },
  };
}
