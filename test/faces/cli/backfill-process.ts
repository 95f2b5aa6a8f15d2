import { flushCompileCache } from "node:module";
import { backfillCommand } from "#faces/cli/backfill/backfill.ts";
import { runStoreCommand } from "./run-store-command.ts";

/**
 * `longwatch backfill` in a process of its own, on a clock that stands still: node backfill-process.ts <database>
 * <platform> <key> <now> <argument>.... Tells its parent how it went.
 */
const [database = "", platform = "", accessKey = "", now = "", ...args] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
// At once: a process that is killed keeps nothing of what it compiled for the next.
flushCompileCache();
const ran = await runStoreCommand(
  (readConfig, io) => backfillCommand(readConfig, io, (_database, clock) => Promise.resolve(clock)),
  {
    DATABASE_URL: database,
    EDGE_API_URL: platform,
    EDGE_API_KEY: accessKey,
    EDGE_SHIELD_ZONES: "101",
    EDGE_REQUESTS_PER_SECOND: "1000",
  },
  args,
  { now: Number(now) },
);
process.send?.(ran, () => process.exit(0));
