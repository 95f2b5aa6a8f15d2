import type { Command } from "commander";
import type { Database } from "../../../db/client.ts";
import type { Backfill, BackfillKey } from "../../../db/ingest/backfills.ts";
import { createPartitionKeeper } from "../../../db/postgres/partition-keeper.ts";
import { readSearchedHours } from "../../../db/search/search-coverage.ts";
import { createListPageWorkers } from "../../../jobs/ingest/list-page-workers.ts";
import { createPseudonymKeyring } from "../../app/pseudonym-keyring.ts";
import { type Config, requireEdge } from "../../config/config.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import { toIso } from "../../http/routes/v1/parts.ts";
import { createLog } from "../../lib/log.ts";
import { count } from "../../lib/progress-bar.ts";
import { showTime } from "../../lib/show-time.ts";
import { horizonAt, startOfDay, startOfHour } from "../../model/horizon.ts";
import { createBackfillProgress } from "../../operations/backfill/backfill-progress.ts";
import { pickRoute } from "../../operations/backfill/pick-route.ts";
import { type RanBackfill, runBackfill } from "../../operations/backfill/run-backfill.ts";
import { createErasureGuard } from "../../privacy/erasure-guard.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { withEdge } from "../edge/open-edge.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type BackfillFlags, ROUTES, readBackfillFlags } from "./read-backfill-flags.ts";

const LIST_PAGE_THREADS = 2;

const HELP = `
Reads a span of the last 72 hours once more and stores what is missing. Needs EDGE_API_URL and EDGE_API_KEY.
Ended at any point, by Ctrl-C or kill -9, the same command goes on where it stood; so does one that asks for a little more,
as -6h does a minute later. Beside a running service it is safe: every event is stored once, whoever reads it.

Routes:
  search   every dimension and the message of each event, in pages of 500
  list     whole UTC days, today and the two before: the record of each event, neither feature nor JA4
  export   the fewest calls, neither message nor record; refused unless its CSV names timestamp and logId
  auto     list for whole days that have been searched before, else search

Examples:
  npm run -s longwatch -- backfill --zone 101 --from -6h --to now
  npm run -s longwatch -- backfill --zone 101 --from 2026-11-19 --to 2026-11-20 --route list
  npm run -s longwatch -- backfill --zone 101 --from 1795168800000 --to 1795172400000 --route search --restart`;

/** `longwatch backfill`: reads a span again and stores what is missing. */
export function backfillCommand(
  readConfig: () => Config,
  io: StoreIo = createProcessIo(),
  toServiceClock: typeof readServiceClock = readServiceClock,
): Command {
  return storeCommand(
    "backfill",
    "Read a span of the last 72 hours again and store what is missing.",
    HELP,
    io,
  )
    .option("--zone <id>", "shield zone (required)")
    .option("--from <time>", "start: ISO-8601, epoch ms or relative such as -6h (required)")
    .option("--to <time>", "end: the same, or now (required)")
    .option("--route <route>", `${ROUTES.join(", ")} (default: auto)`)
    .option("--restart", "from the start, whatever was read before")
    .option("--json", "what was read, as JSON")
    .action(
      storeAction<BackfillFlags>(io, async (flags, read) => {
        const asked = readBackfillFlags(read, flags, io.clock());
        read.finish();
        const config = readConfig();
        requireEdge(config);
        await withStore(config, (database, databaseUrl) =>
          withEdge(config, databaseUrl, async (edge) => {
            const clock = await toServiceClock(database, io.clock);
            await run({ io, config, database, edge, clock }, asked, flags);
          }),
        );
      }),
    );
}

interface Surroundings {
  readonly io: StoreIo;
  readonly config: Config;
  readonly database: Database;
  readonly edge: EdgeClient;
  readonly clock: () => number;
}

async function run(
  surroundings: Surroundings,
  asked: ReturnType<typeof readBackfillFlags>,
  flags: Pick<BackfillFlags, "restart" | "json">,
): Promise<void> {
  const { io, config, database, edge, clock } = surroundings;
  const progress = createBackfillProgress(io.stderr);
  const print = (text: string) => {
    progress.clear();
    io.stderr.write(`${text}\n`);
  };
  const workers = createListPageWorkers({ threads: LIST_PAGE_THREADS });
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error("stopped: the same command goes on from here"));
  process.once("SIGINT", stop).once("SIGTERM", stop);
  const deps = {
    database,
    edge,
    clock,
    partitions: createPartitionKeeper(database),
    erasures: createErasureGuard(createPseudonymKeyring(config, database).open),
    observer: progress.observer,
    digestListPage: workers.digest,
    log: createLog({
      level: config.logLevel === "debug" ? "debug" : "error",
      pretty: false,
      stream: io.stderr,
      secrets: config.edge.key === null ? [] : [config.edge.key],
    }),
    // The service's sweep finds the minutes that were marked.
    afterPage: () => undefined,
    onWait: print,
  };
  try {
    const key = await toKey(surroundings, asked, print);
    const onOpened = async (backfill: Backfill) => {
      print(describeStart(backfill));
      if (backfill.endedAt === null) progress.expect(await countUpstream(edge, backfill, clock()));
    };
    const ran = await runBackfill(deps, { key, restart: flags.restart === true, onOpened }, stopping.signal);
    progress.clear();
    if (flags.json === true) await writeJson(io.stdout, toJson(key, ran, progress.read()));
    else io.stdout.write(describeEnd(ran, progress.read()));
    for (const { from, to } of ran.expired)
      print(`expired before it could be read: ${showTime(from)} to ${showTime(to)} UTC`);
    if (ran.expired.length > 0) io.setExitCode(1);
  } finally {
    progress.clear();
    process.off("SIGINT", stop).off("SIGTERM", stop);
    await workers.close();
  }
}

/** The begin of a span of just 72 hours expires while it is asked for. */
async function toKey(
  { database, clock }: Surroundings,
  { zoneId, route, ...span }: ReturnType<typeof readBackfillFlags>,
  print: (text: string) => void,
): Promise<BackfillKey> {
  const now = clock();
  const from = Math.max(span.from, horizonAt(now));
  if (from > span.from && from < span.to)
    print(`what lies before ${showTime(from)} UTC expires too soon to be read`);
  const to = Math.max(Math.min(span.to, now), from + 1);
  const range = { fromMs: startOfHour(from), toMs: to };
  const picked =
    route === "auto"
      ? pickRoute(now, { from, to }, await readSearchedHours(database.db, zoneId, range))
      : route;
  return { zoneId, route: picked, from, to };
}

/** 0 where the search cannot be asked: the bar does without. */
async function countUpstream(edge: EdgeClient, backfill: Backfill, now: number): Promise<number> {
  const { route, doneThrough, to, zoneId } = backfill;
  const begin = route === "list" ? startOfDay(doneThrough) : doneThrough;
  const request = { from: Math.max(begin, horizonAt(now)), to, pageSize: 1 };
  if (request.from >= request.to) return 0;
  return edge.searchEventLogs({ shieldZoneId: zoneId, request }).then(
    ({ page }) => page.total,
    () => 0,
  );
}

function describeStart({ zoneId, route, from, to, doneThrough, endedAt }: Backfill): string {
  const span = `zone ${zoneId}, ${showTime(from)} to ${showTime(to)} UTC, by ${route}`;
  return endedAt === null && doneThrough > from ? `${span}: going on at ${showTime(doneThrough)}` : span;
}

function toJson(
  { zoneId, route, from, to }: BackfillKey,
  { wasEnded, newEvents, expired }: RanBackfill,
  readEvents: number,
) {
  return {
    zoneId,
    route,
    from: toIso(from),
    to: toIso(to),
    wasEnded,
    readEvents,
    newEvents,
    expired: expired.map((span) => ({ from: toIso(span.from), to: toIso(span.to) })),
  };
}

function describeEnd({ wasEnded, newEvents }: RanBackfill, read: number): string {
  if (wasEnded)
    return `This backfill was through before, with ${count(newEvents)} new events; --restart reads it again.\n`;
  return `Done: ${count(read)} events read, ${count(newEvents)} new since this backfill began.\n`;
}
