import type { Command } from "commander";
import { accountsOf, type Config, requireAccounts } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import type { Backfill, BackfillKey } from "#db/proof/backfills.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { createLog } from "#lib/log.ts";
import { findReachFaults, type Span } from "#model/horizon.ts";
import { BACKFILL_ROUTES, type BackfillRoute } from "#model/kinds.ts";
import { toIso } from "#operations/fields.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { createBackfillProgress } from "#proof/backfill/backfill-deps.ts";
import {
  type AskedBackfill,
  countUpstream,
  planBackfill,
  type RanBackfill,
  runBackfill,
} from "#proof/backfill/run-backfill.ts";
import { createProcessIo, writeJson } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { withEdge } from "../edge/open-edge.ts";
import { readSpan, readZone, type SpanFlags } from "../options/read-options.ts";
import { readServiceClock, untilStopped, withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const STOPPED = "stopped; the same command continues from here";

const HELP = `
Reads the hours of a span of the last 72 hours again and stores the missing events. Needs EDGE_API_URL and EDGE_API_KEY.
If the command is interrupted, even by kill -9, the same command continues where it stopped. A slightly larger span
continues too, such as -6h one minute later. The service may run at the same time: every event is stored once.

Routes:
  search   every dimension and the message of each event, in pages of 500
  list     whole UTC days (today and the two days before): the record of each event, but neither feature nor JA4
  export   the fewest calls, but neither message nor record; refused if the CSV lacks timestamp or logId
  auto     list if every hour of these whole days was searched before, else search

Examples:
  npm run -s longwatch -- backfill --zone 101 --from -6h --to now
  npm run -s longwatch -- backfill --zone 101 --from 2026-11-19 --to 2026-11-20 --route list
  npm run -s longwatch -- backfill --zone 101 --from 1795168800000 --to 1795172400000 --route search --restart`;

/** `longwatch backfill`: reads a span again and stores the missing events. */
export function backfillCommand(
  readConfig: () => Config,
  io: StoreIo = createProcessIo(),
  toServiceClock: typeof readServiceClock = readServiceClock,
): Command {
  return storeCommand("backfill", HELP, io)
    .option("--zone <id>", "shield zone (required)")
    .option("--from <time>", "start: ISO-8601, epoch ms or relative such as -6h (required)")
    .option("--to <time>", "end (same formats, or now; required)")
    .option("--route <route>", `${ROUTES.join(", ")} (default: auto)`)
    .option("--restart", "begin at the start of the span, even if a part was read before")
    .option("--json", "print the counts as JSON")
    .action(
      storeAction<BackfillFlags>(io, async (flags, read) => {
        const asked = readBackfillFlags(read, flags, io.clock());
        read.finish();
        const config = readConfig();
        requireAccounts(config);
        await withStore(config, (database, databaseUrl) =>
          withEdge(config, databaseUrl, async (edge) => {
            const clock = await toServiceClock(database, io.clock);
            const context = { io, config, database, edge, clock };
            await untilStopped(io, (signal) => run(context, asked, flags, signal), STOPPED);
          }),
        );
      }),
    );
}

interface BackfillContext {
  readonly io: StoreIo;
  readonly config: Config;
  readonly database: Database;
  readonly edge: EdgeClient;
  readonly clock: () => number;
}

async function run(
  context: BackfillContext,
  asked: ReturnType<typeof readBackfillFlags>,
  flags: Pick<BackfillFlags, "restart" | "json">,
  signal: AbortSignal,
): Promise<void> {
  const { io, config, database, edge, clock } = context;
  const progress = createBackfillProgress(io.stderr);
  const print = (text: string) => {
    progress.clear();
    io.stderr.write(`${text}\n`);
  };
  const deps = {
    database,
    edge,
    clock,
    partitions: createPartitionKeeper(database),
    erasures: createErasureGuard(createPseudonymKeyring(config, database).open),
    observer: progress.observer,
    log: createLog({
      level: config.logLevel === "debug" ? "debug" : "error",
      pretty: false,
      stream: io.stderr,
      secrets: accountsOf(config).flatMap(({ key }) => key ?? []),
    }),
    // The service's sweep finds the minutes that were marked.
    afterPage: () => undefined,
    onWait: print,
  };
  try {
    const key = await toKey(context, asked, print);
    const onOpened = async (backfill: Backfill) => {
      print(describeStart(backfill));
      if (backfill.endedAt === null) progress.expect(await countUpstream(edge, backfill, clock()));
    };
    const ran = await runBackfill(deps, { key, restart: flags.restart === true, onOpened }, signal);
    progress.clear();
    if (flags.json === true) await writeJson(io.stdout, toJson(key, ran, progress.read()));
    else io.stdout.write(describeEnd(ran, progress.read()));
    for (const { from, to } of ran.expired)
      print(`The platform forgot ${showTime(from)} to ${showTime(to)} UTC before the backfill read it.`);
    if (ran.expired.length > 0) io.setExitCode(1);
  } finally {
    progress.clear();
  }
}

async function toKey(
  { database, clock }: BackfillContext,
  asked: ReturnType<typeof readBackfillFlags>,
  print: (text: string) => void,
): Promise<BackfillKey> {
  const key = await planBackfill(database.db, asked, clock());
  if (key.from > asked.from && key.from < asked.to)
    print(`Events before ${showTime(key.from)} UTC expire too soon to be read.`);
  return key;
}

function describeStart({ zoneId, route, from, to, doneThrough, endedAt }: Backfill): string {
  const span = `zone ${zoneId}, ${showTime(from)} to ${showTime(to)} UTC, by ${route}`;
  return endedAt === null && doneThrough > from ? `${span}, continuing at ${showTime(doneThrough)}` : span;
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
    return `This backfill is already complete, with ${formatWhole(newEvents)} new events; --restart reads the span again.\n`;
  return `Done: ${formatWhole(read)} events read, ${formatWhole(newEvents)} new since this backfill began.\n`;
}

interface BackfillFlags extends SpanFlags {
  readonly route?: string;
  readonly restart?: true;
  readonly json?: true;
}

export const ROUTES = ["auto", ...BACKFILL_ROUTES] as const;
/** Reads the flags. Notes every mistake, including a span whose start the platform has already forgotten. */
function readBackfillFlags(read: FlagReader, flags: BackfillFlags, now: number): AskedBackfill {
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
