/** The command that erases the events of an address. */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Command } from "commander";
import { createArchiveStore, createStorage } from "#app/open-archive-store.ts";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { judgeHeld } from "#jobs/ingest/judge-held.ts";
import type { Clock } from "#lib/clock.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import { toIso } from "#operations/fields.ts";
import {
  type AddressToErase,
  countErasable,
  type ErasableCounts,
  type EraseAddressDeps,
  type Erased,
  eraseAddress,
} from "#operations/privacy/erase-address.ts";
import { createPseudonymKeyring } from "#operations/privacy/pseudonym-keyring.ts";
import { describeErasedFile } from "#operations/service/settings.ts";
import { createErasureGuard } from "#stages/privacy/erasure-guard.ts";
import { NETWORK_RULE, readNetwork, singleAddress } from "#stages/privacy/erasure-target.ts";
import type { PseudonymKey } from "#stages/privacy/pseudonym.ts";
import { replaceAddresses } from "#stages/privacy/replace-addresses.ts";
import { SUMMARIES } from "../commands.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readActor, readText, requireZones } from "../options/read-options.ts";
import { readServiceClock, untilStopped, withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const STOPPED = "stopped; the same command continues from here";

const HELP = `
The time, rule, action and country of each event stay, so that every count stays correct. The command removes address,
URL, user agent, fingerprint, message and record of each event, and the same data from spikes, alerts, messages,
recommendations and unreadable entries. A tombstone (a keyed hash) prevents that Longwatch stores this data again for
events up to now. Later events of the address are new data. The command first counts, then asks. If the command is
interrupted, the same command continues. Exit code 0; 1 if the erasure was not confirmed or failed.

Examples:
  npm run -s longwatch -- erase --ip 203.0.113.7 --dry-run
  npm run -s longwatch -- erase --ip 203.0.113.7 --reason "request 4711" --by alice
  npm run -s longwatch -- erase --cidr 2001:db8:1:2::/64 --zone 101 --yes --json`;

/** `longwatch erase`: removes the data of an address or a network from everything that is stored. */
export function eraseCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("erase", SUMMARIES.erase, HELP, io)
    .option("--ip <address>", "one address")
    .option("--cidr <network>", "a network, such as 203.0.113.0/24")
    .option("--zone <id>", "only events of this shield zone (default: all)")
    .option(
      "--include-masked",
      "also events whose masked address (203.0.113.*) may be this address or a neighbour",
    )
    .option("--until <time>", "events up to this time, which may be in the future (default: now)")
    .option("--reason <text>", "reason, written to the audit trail")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--dry-run", "only count; change nothing")
    .option("--yes", "do not ask for confirmation")
    .option("--json", "print JSON")
    .action(
      storeAction<EraseFlags>(io, async (flags, read) => {
        const asked = readEraseFlags(read, flags, io.stdin);
        read.finish();
        const config = readConfig();
        await withStore(config, async (database) => {
          await requireZones(database.db, config, asked.zoneId === null ? [] : [asked.zoneId]);
          await untilStopped(io, (signal) => run({ io, config, database, signal }, flags, asked), STOPPED);
        });
      }),
    );
}

interface Surroundings {
  readonly io: StoreIo;
  readonly config: Config;
  readonly database: Database;
  readonly signal: AbortSignal;
}

async function run(
  { io, config, database, signal }: Surroundings,
  flags: EraseFlags,
  { network, zoneId, actor, reason, ...asked }: ReturnType<typeof readEraseFlags>,
): Promise<void> {
  const clock = await readServiceClock(database, io.clock);
  const key = await createPseudonymKeyring(config, database, { mayCreate: false }).open();
  if (network === undefined) return;
  const wanted = {
    network,
    zoneId,
    includeMasked: flags.includeMasked === true,
    untilAt: asked.untilAt ?? clock(),
  };
  const line = createProgressLine(io.stderr, io.clock);
  const archive = createArchiveStore(createStorage(config.archive, database.db));
  try {
    line.update("counting ...");
    const found = await countErasable({ database, key, clock, archive }, wanted, signal);
    line.clear();
    if (flags.dryRun === true) return await report(io, flags, describeFound(found), { dryRun: true, found });
    if (flags.yes !== true) {
      io.stderr.write(describeFound(found));
      if (!(await isConfirmed(io))) throw new Error("not confirmed; nothing was changed");
    }
    await storeHeld(database, key, clock, signal);
    const deps: EraseAddressDeps = {
      database,
      key,
      clock,
      archive,
      onProgress: ({ events, day, days }) =>
        line.update(
          `${drawBar(days === 0 ? 1 : day / days)}  ${formatWhole(events)} of ${formatWhole(found.events)} events`,
        ),
    };
    const erased = await eraseAddress(deps, wanted, { actor, reason }, signal);
    line.clear();
    await report(io, flags, describeErased(erased, wanted, found), {
      dryRun: false,
      found,
      ...erased,
      remaining: erased.remaining.map(({ until, ...file }) => ({ ...file, until: toIso(until) })),
    });
  } finally {
    line.clear();
    await archive.duckdb.close();
  }
}

/** Stores the events that a process without the key held back, so that the erasure finds them. */
function storeHeld(database: Database, key: PseudonymKey, clock: Clock, signal: AbortSignal) {
  const partitions = createPartitionKeeper(database);
  const erasures = createErasureGuard(() => Promise.resolve(key));
  const log = { info: () => undefined };
  return judgeHeld({ database, partitions, clock, log, erasures, afterPage: () => undefined }, signal);
}

/** Returns false if the input ends without an answer. */
async function isConfirmed({ stdin, stderr }: StoreIo): Promise<boolean> {
  stderr.write('Type "erase" to continue: ');
  for await (const line of createInterface({ input: stdin })) return line.trim() === "erase";
  return false;
}

async function report(io: StoreIo, { json }: EraseFlags, text: string, facts: object): Promise<void> {
  if (json === true) await writeJson(io.stdout, facts);
  else await writeOut(io.stdout, text);
}

function describeFound({ events, maskedEvents, ...others }: ErasableCounts): string {
  const masked =
    maskedEvents === 0
      ? ""
      : `${many(maskedEvents, "event")} with a masked address that may match; --include-masked erases them too\n`;
  return `${many(events, "event")}; ${describeOthers(others)}\n${masked}`;
}

function describeOthers(counts: Omit<ErasableCounts, "events" | "maskedEvents">): string {
  const { spikes, alerts, notifications, advice, silences, quarantined } = counts;
  return [
    many(spikes, "spike"),
    many(alerts, "alert"),
    many(notifications, "message"),
    many(advice, "recommendation"),
    many(silences, "silence"),
    `unreadable entries: ${formatWhole(quarantined)}`,
  ].join(", ");
}

function describeErased(
  { id, isResumed, counts, remaining }: Erased,
  { untilAt }: AddressToErase,
  found: ErasableCounts,
): string {
  const { events, records, ...others } = counts;
  const resumed = isResumed ? " (continued)" : "";
  const masked =
    found.maskedEvents === 0
      ? ""
      : `Not erased: ${many(found.maskedEvents, "event")} with a masked address that may match.\n`;
  return [
    `erasure #${id}${resumed}: ${many(events, "event")} and ${many(records, "record")} emptied; ${describeOthers(others)}\n`,
    masked,
    ...remaining.map((file) => `${describeErasedFile(file)}.\n`),
    `Longwatch does not store this data again for events up to ${showTime(untilAt)} UTC.\n`,
  ].join("");
}

const MAX_REASON_CHARS = 500;

interface EraseFlags {
  readonly ip?: string;
  readonly cidr?: string;
  readonly zone?: string;
  readonly includeMasked?: true;
  readonly until?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly json?: true;
}

/** Reads the flags. `network` is undefined if it is wrong; the mistake is then noted in `read`. */
function readEraseFlags(read: FlagReader, flags: EraseFlags, stdin: Readable & { readonly isTTY?: boolean }) {
  const network = readWhom(read, flags);
  if (flags.yes !== true && flags.dryRun !== true && stdin.isTTY !== true)
    read.mistakes.push("--yes or --dry-run must be given if the input is not a terminal");
  return {
    network,
    zoneId: flags.zone === undefined ? null : (read.id("zone", flags.zone, "a shield zone's number") ?? null),
    untilAt: flags.until === undefined ? undefined : read.time("until", flags.until),
    actor: readActor(read, flags.by),
    reason: readReason(read, flags.reason),
  };
}

function readWhom(read: FlagReader, { ip, cidr }: EraseFlags) {
  if ((ip === undefined) === (cidr === undefined)) {
    read.mistakes.push("either --ip or --cidr must be given");
    return undefined;
  }
  if (cidr !== undefined) return readNetwork(cidr) ?? read.wrong("cidr", cidr, NETWORK_RULE);
  return singleAddress(ip ?? "") ?? read.wrong("ip", ip, "an IPv4 or IPv6 address");
}

/** Refuses a reason with an address, because the audit trail is kept longer than the erased data. */
function readReason(read: FlagReader, text: string | undefined): string | null {
  const reason = readText(read, "reason", text, MAX_REASON_CHARS) ?? null;
  if (reason === null) return null;
  let isNaming = false;
  replaceAddresses(reason, () => {
    isNaming = true;
    return null;
  });
  return isNaming
    ? (read.wrong("reason", text, "a text without an address: the audit trail keeps it") ?? null)
    : reason;
}
