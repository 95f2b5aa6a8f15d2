/** The command that erases the events of an address. */
import type { Database } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { describeErasedFile } from "#health/service/settings.ts";
import { judgeHeld } from "#jobs/ingest/retry-quarantined.ts";
import type { Clock } from "#lib/clock.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { toIso } from "#operations/fields.ts";
import {
  type AddressToErase,
  countErasable,
  type ErasableCounts,
  type EraseAddressDeps,
  type Erased,
  eraseAddress,
} from "#people/privacy/erase-address.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { NETWORK_RULE, readNetwork, singleAddress } from "#people/rules/erasure-target.ts";
import type { PseudonymKey } from "#people/rules/pseudonym.ts";
import { replaceAddresses } from "#people/rules/replace-addresses.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readActor, readText, requireZones } from "../options/read-options.ts";
import { BY, confirm, defineTask, onStore, type StoreParts } from "../store/define-task.ts";

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
export const eraseCommand = defineTask({
  name: "erase",
  help: HELP,
  options: {
    "--ip <address>": "one address",
    "--cidr <network>": "a network, such as 203.0.113.0/24",
    "--zone <id>": "only events of this shield zone (default: all)",
    "--include-masked": "also events whose masked address (203.0.113.*) may be this address or a neighbour",
    "--until <time>": "events up to this time, which may be in the future (default: now)",
    "--reason <text>": "reason, written to the audit trail",
    ...BY,
    "--dry-run": "only count; change nothing",
    "--yes": "do not ask for confirmation",
  },
  read(flags, read, { io: { stdin } }) {
    const network = readWhom(read, flags);
    if (flags.yes !== true && flags.dryRun !== true && stdin.isTTY !== true)
      read.mistakes.push("--yes or --dry-run must be given if the input is not a terminal");
    const zone = flags.zone === undefined ? null : read.id("zone", flags.zone, "a shield zone's number");
    const more = {
      zoneId: zone ?? null,
      includeMasked: flags.includeMasked === true,
      untilAt: flags.until === undefined ? undefined : read.time("until", flags.until),
      by: { actor: readActor(read, flags.by), reason: readReason(read, flags.reason) },
      isDryRun: flags.dryRun === true,
      isSure: flags.yes === true,
    };
    return network && { network, ...more };
  },
  async run({ by, isDryRun, isSure, ...asked }, io, readConfig) {
    const erase = async ({ config, onProgress, clear, signal, ...parts }: StoreParts) => {
      const { database, clock } = parts;
      await requireZones(database.db, config, asked.zoneId === null ? [] : [asked.zoneId]);
      const key = await createPseudonymKeyring(config, database, { mayCreate: false }).open();
      const wanted = { ...asked, untilAt: asked.untilAt ?? clock() };
      onProgress(null, "counting ...");
      const found = await countErasable({ ...parts, key }, wanted, signal);
      if (isDryRun) return { facts: { dryRun: true, found }, text: describeFound(found) };
      clear();
      if (!isSure) await confirm(io, describeFound(found), "erase", signal);
      await storeHeld(database, key, clock, signal);
      const all = formatWhole(found.events);
      const report: EraseAddressDeps["onProgress"] = ({ events, day, days }) =>
        onProgress(days === 0 ? 1 : day / days, `${formatWhole(events)} of ${all} events`);
      const erased = await eraseAddress({ ...parts, key, onProgress: report }, wanted, by, signal);
      const remaining = erased.remaining.map(({ until, ...file }) => ({ ...file, until: toIso(until) }));
      const text = describeErased(erased, wanted, found);
      return { facts: { dryRun: false, found, ...erased, remaining }, text };
    };
    return onStore(io, readConfig(), erase, { stopped: "stopped; the same command continues from here" });
  },
});

/** Stores the events that a process without the key held back, so that the erasure finds them. */
function storeHeld(database: Database, key: PseudonymKey, clock: Clock, signal: AbortSignal) {
  const partitions = createPartitionKeeper(database);
  const erasures = createErasureGuard(() => Promise.resolve(key));
  const log = { info: () => undefined };
  return judgeHeld({ database, partitions, clock, log, erasures, afterPage: () => undefined }, signal);
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

/** Returns undefined and notes a mistake if the network is wrong. */
function readWhom(read: FlagReader, { ip, cidr }: { readonly ip?: string; readonly cidr?: string }) {
  if ((ip === undefined) === (cidr === undefined)) {
    read.mistakes.push("either --ip or --cidr must be given");
    return undefined;
  }
  if (cidr !== undefined) return readNetwork(cidr) ?? read.wrong("cidr", cidr, NETWORK_RULE);
  return singleAddress(ip ?? "") ?? read.wrong("ip", ip, "an IPv4 or IPv6 address");
}

/** Refuses a reason with an address, because the audit trail is kept longer than the erased data. */
function readReason(read: FlagReader, text: string | undefined): string | null {
  const reason = readText(read, "reason", text, 500) ?? null;
  if (reason === null) return null;
  let isNaming = false;
  replaceAddresses(reason, () => {
    isNaming = true;
    return null;
  });
  if (!isNaming) return reason;
  return read.wrong("reason", text, "a text without an address: the audit trail keeps it") ?? null;
}
