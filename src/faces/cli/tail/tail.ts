import { setTimeout as delay } from "node:timers/promises";
import type { Command } from "commander";
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { Config } from "#config/config.ts";
import { escapeText } from "#lib/text.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import { createProcessIo, writeJsonLine, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { FILTER_HELP } from "../edge/read-search.ts";
import { allowRemote, pickAsk } from "../operations/remote-commands.ts";
import { findChosen, gather, readZoneChoice, readZones } from "../options/read-options.ts";
import { planAsked, toNativeRequest } from "../search/find-pages.ts";
import { follow } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { createEventPrinter } from "../terminal/print.ts";
import { createFollower, type TailSource, tailElsewhere, tailHere } from "./follow-events.ts";

const DEFAULT_BACK_MS = 60_000;
/** After so many polls the zones are listed again, because a new zone may be watched. */
const ZONES_POLLS = 30;

const HELP = `
The command prints the events of the last minute, or since --since, and then each event as Longwatch stores it, oldest first,
until Ctrl-C. An event that the platform shows up to two minutes late is printed when it is stored, below later ones. Times
are UTC. On a terminal a line is cut to its width; in a pipe texts are cut at 300 characters. Control characters in
payloads are spelled out. The command waits for a database or a service that restarts, and says so on stderr.
--json prints one event per line (NDJSON), uncut. A service elsewhere (--url) is asked every second, and less often for more
than two zones. Filters are those of search, except method, which comes with the record of an event.

Examples:
  npm run -s longwatch -- tail
  npm run -s longwatch -- tail --zone 101 --since -10m
  npm run -s longwatch -- tail --account agency-a
  npm run -s longwatch -- tail --filter action:eq:blocked --filter address:cidr:203.0.113.0/24
  npm run -s longwatch -- tail --query /wp-login --json | jq .fields.ip`;

interface Flags {
  readonly zone?: readonly string[];
  readonly account?: string;
  readonly since?: string;
  readonly query?: string;
  readonly filter?: readonly string[];
  readonly json?: true;
}

/** `longwatch tail`: prints events as they are stored. */
export function tailCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return allowRemote(storeCommand("tail", HELP, io))
    .option("--zone <ids>", "only these shield zones (default: all)", gather)
    .option("--account <name>", "only the zones that this account has now, in the place of --zone")
    .option("--since <time>", "begin here: epoch ms, ISO-8601 or relative such as -10m (default: -1m)")
    .option("--query <text>", "free text across IP, rule, URL, User-Agent and rule name")
    .option("--filter <field:op:value>", FILTER_HELP, gather)
    .option("--json", "print one JSON document per line")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const chosen = readZones(read, flags.zone);
        const { account } = flags;
        const ofAccount =
          account === undefined ? null : readZoneChoice(read, { zone: flags.zone?.join(), account });
        const asked = readTailOptions(read, flags, io.clock());
        read.finish();
        if (asked === undefined) return;
        const { plan, request } = asked;
        const config = readConfig();
        const zoneIds =
          ofAccount === null
            ? chosen
            : (await findChosen(pickAsk(config, io, null), ofAccount)).split(",").map(Number);
        const source =
          config.remote === null
            ? tailHere(readConfig, plan, zoneIds ?? [])
            : tailElsewhere((signal) => pickAsk(config, io, null, signal), io.clock, request);
        const write = createWriter(io, flags.json === true);
        await print(io, source, { zoneIds, from: plan.from, write });
      }),
    );
}

interface TailOptions {
  readonly plan: SearchPlan;
  /** The query and the filters, as the API takes them. */
  readonly request: object;
}

function readTailOptions(read: FlagReader, flags: Flags, now: number): TailOptions | undefined {
  const from = flags.since === undefined ? now - DEFAULT_BACK_MS : read.time("since", flags.since);
  if (from === undefined) return undefined;
  if (from > now) read.wrong("since", flags.since, "a time in the past");
  const request = { query: flags.query ?? "", filters: read.filters(flags.filter ?? []) };
  const plan = planAsked(
    read,
    { from, to: Math.max(from, now) + 1, ...request },
    { kind: "export", flags: {} },
  );
  if (plan === undefined) return undefined;
  if (plan.methodClauses.length > 0)
    read.wrong(
      "filter",
      "method",
      "another field: the method is in the record of an event, which is stored after the event",
    );
  return { plan, request: toNativeRequest(request, {}) as object };
}

type Write = (zoneId: number, event: ArchivedEvent) => Promise<void>;

function createWriter(io: StoreIo, isJson: boolean): Write {
  if (isJson)
    return (zoneId, { logId, occurredAt, fields, message }) =>
      writeJsonLine(io.stdout, { zoneId, logId, timestamp: occurredAt, fields, message });
  const show = createEventPrinter(io);
  return (zoneId, event) => writeOut(io.stdout, show(zoneId, event));
}

interface Wanted {
  /** Undefined: all zones, also those that are watched later. */
  readonly zoneIds: readonly number[] | undefined;
  readonly from: number;
  readonly write: Write;
}

async function print(
  io: StoreIo,
  { name, pauseMs, open }: TailSource,
  { zoneIds, from, write }: Wanted,
): Promise<void> {
  const say = (text: string) => void io.stderr.write(`longwatch tail: ${escapeText(text)}\n`);
  const follower = createFollower<ArchivedEvent>(zoneIds ?? [], from);
  let zones = zoneIds ?? [];
  let polls = 0;
  await follow(
    io,
    {
      onLost: (reason) => say(`${reason}. Waiting for the ${name} ...`),
      onBack: () => say(`the ${name} answers again`),
    },
    ({ signal, onAnswer }) =>
      open(signal, async ({ readOnward, listZones }) => {
        while (!signal.aborted) {
          if (zoneIds === undefined && polls++ % ZONES_POLLS === 0) {
            zones = await listZones();
            follower.watch(zones);
          }
          for await (const { zoneId, event } of follower.poll(readOnward)) {
            await write(zoneId, event);
            if (signal.aborted) return;
          }
          onAnswer();
          await delay(pauseMs(zones.length), undefined, { signal }).catch(() => undefined);
        }
      }),
  );
}
