import { randomBytes } from "node:crypto";
import { viewService } from "#app/view-service.ts";
import type { Config } from "#config/config.ts";
import { readServerSecret } from "#db/service/server-secrets.ts";
import type { Clock } from "#lib/clock.ts";
import { localCaller } from "#operations/caller.ts";
import type { AskOperation, Changing } from "#operations/operation.ts";
import { createPageCursors } from "#operations/page-cursor.ts";
import { perform } from "#operations/perform.ts";
import type { Searching } from "#operations/search/searching.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { withEdge } from "../edge/open-edge.ts";
import { withFiles } from "../search/with-search.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";

/** Runs operations in this process, on the service's database, with every right. `actor` is for the audit trail. */
export function askLocally({
  config,
  clock,
  actor,
}: {
  readonly config: Config;
  readonly clock: Clock;
  readonly actor: string | null;
}): AskOperation {
  return async (operation, typed) => {
    const input = operation.input.parse(typed);
    const settled = {
      now: clock(),
      zones: () => config.alerting.routing.zones ?? {},
      service: viewService(config),
    };
    const answer = operation.changes ? null : (operation.settle?.(settled, input) ?? null);
    if (answer !== null) return answer;
    return withStore(config, async (database, databaseUrl) => {
      const { db } = database;
      const serviceClock = await readServiceClock(database, clock);
      const performing = {
        ...settled,
        caller: localCaller(actor ?? "local"),
        sessionId: null,
        db,
        database,
        now: serviceClock(),
        clock: serviceClock,
        signal: new AbortController().signal,
        cursors: createPageCursors(await readServerSecret(db, "page-cursors", randomBytes(32))),
        log: { warn: () => undefined },
        searching: {
          openedBlocks: createOpenedBlocks(),
          refuseCostly: () => undefined,
          vendor: config.platformVendor,
          runInPlace: (_asked, { signal: interrupted }, run) =>
            withFiles(database, config, { interrupted }, run),
        } satisfies Searching,
        instanceId: "",
        enqueue: async () => false,
      };
      const run = (edge: Changing["edge"]) => perform(operation, { ...performing, edge }, input);
      const isAsking = operation.changes && operation.asksPlatform === true && config.edge.url !== null;
      return isAsking ? withEdge(config, databaseUrl, run) : run(null);
    });
  };
}
