import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import type { FoundEvent } from "#db/search/search-found.ts";
import { searchOnward } from "#db/search/search-onward.ts";
import { escapeText } from "#lib/escape-text.ts";
import { LAST_MS } from "#lib/units.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { FILTER_HELP } from "../edge/read-search.ts";
import { writeJsonLine } from "../edge/write-json.ts";
import { gather, readZones } from "../options/read-list.ts";
import { requireZones } from "../options/require-known.ts";
import { planAsked } from "../search/plan-asked.ts";
import { followStore } from "../store/follow-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { createEventPrinter } from "../terminal/event-printer.ts";
import { createFollower } from "./follow-events.ts";

const DEFAULT_BACK_MS = 60_000;
const POLL_MS = 1_000;
const PAGE_SIZE = 500;
/** After so many polls the zones are listed again, because a new zone may be watched. */
const ZONES_POLLS = 30;

const HELP = `
The command prints the events of the last minute, or since --since, and then each event as Longwatch stores it, oldest first,
until Ctrl-C. An event that the platform shows up to two minutes late is printed when it is stored, below later ones. Times
are UTC. On a terminal a line is cut to its width; in a pipe texts are cut at 300 characters. Control characters in
payloads are spelled out. The command waits for a database or a service that restarts, and says so on stderr.
--json prints one event per line (NDJSON), uncut. Filters are those of search, except method, which comes with the record of an event.

Examples:
  npm run -s longwatch -- tail
  npm run -s longwatch -- tail --zone 101 --since -10m
  npm run -s longwatch -- tail --filter action:eq:blocked --filter address:cidr:203.0.113.0/24
  npm run -s longwatch -- tail --query /wp-login --json | jq .fields.ip`;

interface Flags {
  readonly zone?: readonly string[];
  readonly since?: string;
  readonly query?: string;
  readonly filter?: readonly string[];
  readonly json?: true;
}

/** `longwatch tail`: prints events as they are stored. */
export function tailCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("tail", SUMMARIES.tail, HELP, io)
    .option("--zone <ids>", "only these shield zones (default: all)", gather)
    .option("--since <time>", "begin here: epoch ms, ISO-8601 or relative such as -10m (default: -1m)")
    .option("--query <text>", "free text across IP, rule, URL, User-Agent and rule name")
    .option("--filter <field:op:value>", FILTER_HELP, gather)
    .option("--json", "print one JSON document per line")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const zoneIds = readZones(read, flags.zone);
        const plan = readPlan(read, flags, io.clock());
        read.finish();
        if (plan !== undefined)
          await follow(readConfig, io, { zoneIds, plan, write: createWriter(io, flags.json === true) });
      }),
    );
}

function readPlan(read: FlagReader, flags: Flags, now: number): SearchPlan | undefined {
  const from = flags.since === undefined ? now - DEFAULT_BACK_MS : read.time("since", flags.since);
  if (from === undefined) return undefined;
  if (from > now) read.wrong("since", flags.since, "a time in the past");
  const filters = read.filters(flags.filter ?? []);
  const asked = { from, to: Math.max(from, now) + 1, query: flags.query ?? "", filters };
  const plan = planAsked(read, asked, { kind: "export", flags: {} });
  if (plan !== undefined && plan.methodClauses.length > 0)
    read.wrong(
      "filter",
      "method",
      "another field: the method is in the record of an event, which is stored after the event",
    );
  return plan;
}

type Write = (zoneId: number, event: FoundEvent) => Promise<void>;

function createWriter(io: StoreIo, isJson: boolean): Write {
  if (isJson)
    return (zoneId, { logId, occurredAt, fields, message }) =>
      writeJsonLine(io.stdout, { zoneId, logId, timestamp: occurredAt, fields, message });
  const print = createEventPrinter(io);
  return (zoneId, event) => writeOut(io.stdout, print(zoneId, event));
}

async function follow(
  readConfig: () => Config,
  io: StoreIo,
  {
    zoneIds,
    plan: { from, clauses },
    write,
  }: { readonly zoneIds: readonly number[] | undefined; readonly plan: SearchPlan; readonly write: Write },
): Promise<void> {
  const say = (text: string) => void io.stderr.write(`longwatch tail: ${escapeText(text)}\n`);
  const follower = createFollower<FoundEvent>(zoneIds ?? [], from);
  let polls = 0;
  await followStore(
    io,
    readConfig,
    {
      onLost: (reason) => say(`${reason}. Waiting for the database ...`),
      onBack: () => say("the database answers again"),
    },
    async ({ database: { db }, signal, onAnswer }) => {
      await requireZones(db, readConfig(), zoneIds ?? []);
      while (!signal.aborted) {
        if (zoneIds === undefined && polls++ % ZONES_POLLS === 0)
          follower.watch((await listKnownZones(db)).map(({ zoneId }) => zoneId));
        for await (const { zoneId, event } of follower.poll(reader(db, clauses))) {
          await write(zoneId, event);
          if (signal.aborted) return;
        }
        onAnswer();
        await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
      }
    },
  );
}

function reader(db: Queryable, clauses: SearchPlan["clauses"]) {
  return (zoneId: number, from: number, after: FoundEvent | null) =>
    searchOnward(db, zoneId, { from, to: LAST_MS, clauses, after, limit: PAGE_SIZE });
}
