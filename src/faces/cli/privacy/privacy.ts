/** The commands about pseudonyms. */
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import { readHeldCounts } from "#db/ingest/quarantine.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import {
  countErasuresInEffect,
  type EndedErasure,
  endErasuresOf,
  lastErasureUntil,
} from "#db/people/erasures.ts";
import { readKeyId, replaceKeyId } from "#db/people/pseudonymise.ts";
import { waitForIngest } from "#db/people/tombstones.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { showPrivacy } from "#health/service/settings.ts";
import { UsageError } from "#lib/errors.ts";
import { many, showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { KEPT_MS } from "#model/horizon.ts";
import { readSentAddress } from "#model/ip-address.ts";
import { createPseudonymKeyring, prepareKey, prepareSubstitute } from "#people/privacy/pseudonym-keyring.ts";
import { toPseudonym } from "#people/rules/pseudonym.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import { readActor } from "../options/read-options.ts";
import { BY, defineTask, onStore, type StoreParts } from "../store/define-task.ts";
import type { StoreIo } from "../store/store-command.ts";

const PSEUDONYM_HELP = `
After LONGWATCH_IP_DAYS a pseudonym replaces each address. To find older events of a person, search for the pseudonym
instead of the address. Exit code 0; 1 if this process does not have the key in use.

Examples:
  npm run -s longwatch -- privacy pseudonym --ip 203.0.113.7
  npm run -s longwatch -- privacy pseudonym --ip 203.0.113.7 --json`;

const pseudonymCommand = defineTask({
  name: "pseudonym",
  summary: "Print the pseudonym of an address.",
  help: PSEUDONYM_HELP,
  options: { "--ip <address>": "the address (required)" },
  read({ ip }, read) {
    const address = read.required("ip", ip, "an IPv4 or IPv6 address");
    if (address === undefined || readSentAddress(address) !== null) return address;
    return read.wrong("ip", address, "an IPv4 or IPv6 address");
  },
  run: (ip, io, readConfig) =>
    onStore(io, readConfig(), async ({ config, database }) => {
      const key = await createPseudonymKeyring(config, database, { mayCreate: false }).open();
      const pseudonym = toPseudonym(key, ip);
      return { facts: { ip, pseudonym }, text: `${pseudonym}\n` };
    }),
});

const ROTATE_HELP = `
After the rotation nobody can trace an old pseudonym to its address or find it for an erasure. If LONGWATCH_PSEUDONYM_KEY
is set, the command puts that key in use: change the variable first, for every process. The command refuses to rotate
while an erasure is unfinished or covers events that the platform still shows (72 hours), because the old key is needed
to recognise these events.

--lost is for a key that is lost everywhere; it does not wait. Erasures that are unfinished or cover later events end. The
command lists them; repeat them. New events that the lost erasures may cover are stored as erased events, and so are
events that were held back. Exit code 0; 2 if the command refuses.

Examples:
  npm run -s longwatch -- privacy rotate-key --yes --by alice
  npm run -s longwatch -- privacy rotate-key --lost --yes --by alice`;

const rotateKeyCommand = defineTask({
  name: "rotate-key",
  summary: "Put a new key in use; old pseudonyms can no longer be linked.",
  help: ROTATE_HELP,
  options: {
    "--yes": "confirm that this cannot be undone (required)",
    "--lost": "the key in use is lost for good",
    ...BY,
  },
  read({ yes, lost, by }, read) {
    if (yes !== true) read.wrong("yes", undefined, "given, because a rotation cannot be undone");
    return { isLost: lost === true, actor: readActor(read, by) };
  },
  run: ({ isLost, actor }, io, readConfig) =>
    onStore(io, readConfig(), async ({ clock, ...parts }) => {
      const rotation = { ...parts, actor, nowMs: clock() };
      const { keyId, text } = await (isLost ? replaceLostKey(rotation) : rotateKey(rotation));
      return { facts: { keyId }, text };
    }),
});

interface Rotation extends Pick<StoreParts, "database" | "config" | "signal"> {
  readonly actor: string;
  readonly nowMs: number;
}

/** The key that is in use now, and a text about the rotation. */
interface Rotated {
  readonly keyId: string;
  readonly text: string;
}

async function rotateKey({ database, config, signal, actor, nowMs }: Rotation): Promise<Rotated> {
  const { key, adopt } = await inTransaction(database, async ({ tx }) => {
    await waitForIngest(tx);
    signal.throwIfAborted();
    await refuseWhileInEffect(tx, nowMs);
    const before = await readKeyId(tx);
    const next = prepareKey(config);
    const { key } = next;
    if (key.id === before)
      throw new UsageError(["LONGWATCH_PSEUDONYM_KEY is already the key in use; set it to a new key first"]);
    await replaceKeyId(tx, key.id, nowMs);
    const details = { before, after: key.id };
    await writeAuditEntry(tx, { actor, action: "pseudonym-key.rotated", subject: "pseudonym key", details });
    return next;
  });
  adopt();
  return { keyId: key.id, text: `key ${key.id} is in use.\n` };
}

async function refuseWhileInEffect(tx: Queryable, nowMs: number): Promise<void> {
  const inEffect = await countErasuresInEffect(tx, nowMs - KEPT_MS);
  if (inEffect === 0) return;
  const last = (await lastErasureUntil(tx)) ?? nowMs;
  const until =
    last + KEPT_MS > nowMs
      ? `wait until ${showTime(last + KEPT_MS)} UTC, when the platform no longer shows their events`
      : "finish them with the same erase command";
  throw new UsageError([
    `the key cannot be rotated: ${many(inEffect, "erasure")} in effect or unfinished; ${until}`,
  ]);
}

async function replaceLostKey({ database, config, signal, actor, nowMs }: Rotation): Promise<Rotated> {
  if ((await readKeyId(database.db)) === null)
    throw new UsageError(["--lost must be left out: no key was ever in use; the next start makes one"]);
  if ((await createPseudonymKeyring(config, database, { mayCreate: false }).findProblem()) === null)
    throw new UsageError(["--lost must be left out: this process has the key in use"]);
  const { key, adopt } = prepareSubstitute(config);
  const { ended, held } = await inTransaction(database, async ({ tx }) => {
    await waitForIngest(tx);
    signal.throwIfAborted();
    const before = await readKeyId(tx);
    const ended = before === null ? [] : await endErasuresOf(tx, before, nowMs);
    const held = await readHeldCounts(tx);
    await replaceKeyId(tx, key.id, nowMs);
    const details = { before, after: key.id, endedErasures: ended.map(({ id }) => id), held };
    await writeAuditEntry(tx, { actor, action: "pseudonym-key.lost", subject: "pseudonym key", details });
    return { ended, held };
  });
  adopt();
  const entries = held.reduce((sum, zone) => sum + zone.entries, 0);
  const text = [
    `key ${key.id} is in use. Within a minute the service stores what was held back: ${many(entries, "entry", "entries")}.\n`,
    ...(ended.length === 0 ? [] : ["These erasures have ended. Repeat them with the new key:\n"]),
    ...ended.map(describeEnded),
  ].join("");
  return { keyId: key.id, text };
}

function describeEnded({ id, requestedAt, untilAt, isFinished, actor, reason }: EndedErasure): string {
  const who = actor === null ? "" : ` by ${escapeText(actor)}`;
  const why = reason === null ? "" : `, "${escapeText(reason)}"`;
  const state = isFinished ? "" : "; it was unfinished";
  return `  erasure #${id} of ${showTime(requestedAt)} UTC${who}${why}: events up to ${showTime(untilAt)} UTC${state}\n`;
}

/** `longwatch privacy`: shows the retention of personal data and manages the key of the pseudonyms. */
export function privacyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const others = [pseudonymCommand(readConfig, io), rotateKeyCommand(readConfig, io)];
  return subjectCommand("privacy", "", [showPrivacy], readConfig, io, others);
}
