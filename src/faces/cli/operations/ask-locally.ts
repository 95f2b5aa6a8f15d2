import { randomBytes } from "node:crypto";
import { viewService } from "#app/view-service.ts";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import type { Searching } from "#archive/search/searching.ts";
import { accountsOf, type Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { readServerSecret } from "#db/health/server-facts.ts";
import { withEdge } from "#faces/cli/edge/open-edge.ts";
import { withFiles } from "#faces/cli/store/store-command.ts";
import type { Clock } from "#lib/clock.ts";
import { localCaller } from "#operations/caller.ts";
import { type AskOperation, type Changing, createPageCursors } from "#operations/operation.ts";
import { perform } from "#operations/perform.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { readServiceClock, withStore } from "../store/open-store.ts";

interface Asker {
  readonly config: Config;
  readonly clock: Clock;
  /** The name for the audit trail. */
  readonly actor: string | null;
}

/** Runs operations in this process, on the service's database, with every right. Opens the database for each of them. */
export function askLocally(asker: Asker): AskOperation {
  const { config, clock } = asker;
  return async (operation, typed) => {
    if (!operation.changes && operation.settle !== undefined) {
      const settled = { now: clock(), zones: () => readNames(config), service: viewService(config) };
      const answer = operation.settle(settled, operation.input.parse(typed));
      if (answer !== null) return answer;
    }
    return withStore(config, (database, databaseUrl) => {
      const ask = (edge: Changing["edge"]) => askOn(database, { ...asker, edge })(operation, typed);
      const isAsking = operation.changes && operation.asksPlatform === true && accountsOf(config).length > 0;
      return isAsking ? withEdge(config, databaseUrl, ask) : ask(null);
    });
  };
}

/** The same on a database that is open. Without `runInPlace`, each search opens the files of the archive. */
export function askOn(
  database: Database,
  {
    config,
    clock,
    actor,
    edge = null,
    runInPlace = (_asked, { signal: interrupted }, run) => withFiles(database, config, { interrupted }, run),
  }: Asker & { readonly edge?: Changing["edge"]; readonly runInPlace?: Searching["runInPlace"] },
): AskOperation {
  const openedBlocks = createOpenedBlocks();
  return async (operation, typed) => {
    const { db } = database;
    const serviceClock = await readServiceClock(database, clock);
    const performing = {
      caller: localCaller(actor ?? "local"),
      sessionId: null,
      db,
      database,
      now: serviceClock(),
      clock: serviceClock,
      zones: () => readNames(config),
      service: viewService(config),
      signal: new AbortController().signal,
      cursors: createPageCursors(await readServerSecret(db, "page-cursors", randomBytes(32))),
      log: { warn: () => undefined },
      searching: {
        openedBlocks,
        refuseCostly: () => undefined,
        ocsf: { vendor: config.platformVendor, actions: config.alerting.actions },
        runInPlace,
      },
      instanceId: "",
      enqueue: async () => false,
      erasures: createErasureGuard(createPseudonymKeyring(config, database, { mayCreate: false }).open),
      edge,
    };
    return perform(operation, performing, operation.input.parse(typed));
  };
}

function readNames({ alerting }: Config) {
  return alerting.routing.zones ?? {};
}
