/** Options that several commands have, and values that must exist. */

import type { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import { type Config, zonesOf } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import {
  findKnownZones,
  isCountedRule,
  listBusiestRules,
  listNamableZones,
} from "#db/people/known-subjects.ts";
import { listAccounts } from "#health/service/accounts.ts";
import { UsageError } from "#lib/errors.ts";
import { whoRuns } from "#lib/process.ts";
import { closestName, escapeText } from "#lib/text.ts";
import type { Span } from "#model/horizon.ts";
import { localCaller } from "#operations/caller.ts";
import { ZoneIds } from "#operations/fields.ts";
import type { AskOperation } from "#operations/operation.ts";
import { listVisibleZones, nameKnown } from "#operations/require-known.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

export interface SpanFlags {
  readonly zone?: string;
  readonly from?: string;
  readonly to?: string;
}

/** Reads `--from` and `--to` and checks their order. A missing flag without a fallback is a mistake. */
export function readSpan(
  read: FlagReader,
  flags: SpanFlags,
  fallback: { readonly from?: number; readonly to?: number } = {},
): Span {
  const from =
    flags.from === undefined
      ? (fallback.from ?? read.time("from", undefined))
      : read.time("from", flags.from);
  const to = flags.to === undefined ? (fallback.to ?? read.time("to", undefined)) : read.time("to", flags.to);
  if (from === undefined || to === undefined) return { from: 0, to: 0 };
  if (to <= from)
    read.wrong(flags.to === undefined ? "from" : "to", flags.to ?? flags.from, rule(flags, from, to));
  return { from, to };
}

function rule(flags: SpanFlags, from: number, to: number): string {
  return flags.to === undefined
    ? `before the end of the span, ${new Date(to).toISOString()}`
    : `after the start of the span, ${new Date(from).toISOString()}`;
}

/** Reads `--zone`. Returns undefined if the flag is missing or wrong. */
export function readZone(read: FlagReader, flags: SpanFlags, isRequired: boolean): number | undefined {
  if (flags.zone === undefined && !isRequired) return undefined;
  return read.id("zone", flags.zone, "a shield zone's number");
}

/** Reads `--zone` of a command that takes several, or `--account` in its place, whose zones `zonesOf` finds. */
export function readZoneChoice(read: FlagReader, { zone, account }: ZoneFlags): ZoneChoice {
  if (account === undefined) return { text: read.zones("zone", zone) ?? "", account };
  if (zone !== undefined) read.wrong("account", account, "left out beside --zone");
  return { text: "", account };
}

interface ZoneFlags {
  readonly zone?: string | undefined;
  readonly account?: string | undefined;
}
interface ZoneChoice {
  readonly text: string;
  readonly account: string | undefined;
}

/**
 * Returns the zones as the API takes them. Those of an account are asked for.
 * @throws {UsageError} for an account that the service does not have
 */
export async function findChosen(ask: AskOperation, { text, account }: ZoneChoice): Promise<string> {
  if (account === undefined) return text;
  const { items } = (await ask(listAccounts, {})) as z.output<typeof listAccounts.output>;
  const found = items.find(({ name }) => name === account);
  if (found !== undefined) return found.zones.join();
  const known = nameKnown(items.map(({ name }) => name));
  throw new UsageError([`--account "${escapeText(account)}" must be an account of the service (${known})`]);
}

/** Collects the values of an option that may be repeated. */
export function gather(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Reads the numbers of shield zones, separated by commas or given by repeating the option. Returns undefined without the option. */
export function readZones(
  read: FlagReader,
  values: readonly string[] | undefined,
  flag = "zone",
): number[] | undefined {
  if (values === undefined) return undefined;
  const texts = new Set(values.flatMap((value) => value.split(",").map((part) => part.trim())));
  return [...texts].flatMap((text) => read.id(flag, text, "a shield zone's number") ?? []);
}

/** Reads the settings. Mistakes of the command line are reported before mistakes of the settings. */
export function readAfter(read: FlagReader, readConfig: () => Config): Config {
  try {
    return readConfig();
  } catch (thrown) {
    read.finish();
    throw thrown;
  }
}

const MAX_NAME_CHARS = 100;

/**
 * Returns `--by`, or the user who runs the command, for the audit trail. It is no proof. An address in it is masked. The
 * audit trail of a service elsewhere gets the name of the key.
 */
export function readActor(
  read: FlagReader,
  by: string | undefined,
  { remote }: Pick<Config, "remote"> = { remote: null },
): string {
  if (remote !== null && by !== undefined)
    read.mistakes.push("--by cannot be used with another service's address: the key names who acts");
  return maskText(readText(read, "by", by, MAX_NAME_CHARS) ?? whoRuns());
}

/** Returns a short text of one line, or undefined if it is missing or wrong. */
export function readText(
  read: FlagReader,
  flag: string,
  value: string | undefined,
  maxChars: number,
): string | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const isLine = text !== "" && text.length <= maxChars && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text);
  return isLine ? text : read.wrong(flag, value, `1 to ${maxChars} characters on one line`);
}

const MAX_NAMED = 20;
const MAX_RULE_CHARS = 64;

/**
 * Checks that every zone is configured or has stored data. A zone that is no longer watched keeps its history.
 * @throws {UsageError} with a mistake for every other zone. Without this check, a misspelt zone would look like a zone
 * without problems.
 */
export async function requireZones(
  db: Queryable,
  config: Pick<Config, "edge" | "alerting">,
  zoneIds: readonly number[],
  flag = "zone",
): Promise<void> {
  const asked = zoneIds.filter((id) => !zonesOf(config).includes(id));
  if (asked.length === 0) return;
  const stored = await findKnownZones(db, asked);
  const unknown = asked.filter((id) => !stored.includes(id));
  if (unknown.length === 0) return;
  const known = [...new Set([...zonesOf(config), ...(await listNamableZones(db))])].sort((a, b) => a - b);
  const rule = `a shield zone that is configured or has stored data (${nameKnown(known)})`;
  throw new UsageError(unknown.map((id) => `--${flag} "${id}" must be ${rule}`));
}

/** Returns the zones of `--zone`, which `read.zones` has read: those that `requireZones` lets pass; for all, every known one. */
export async function findZones(
  db: Queryable,
  config: Pick<Config, "edge" | "alerting">,
  text: string,
): Promise<readonly number[]> {
  const zone = ZoneIds.parse(text);
  if (zone === "all")
    return listVisibleZones({ db, caller: localCaller(""), service: { zoneIds: zonesOf(config) } });
  await requireZones(db, config, zone);
  return zone;
}

/** @throws {UsageError} for a rule without a single event in the zone */
export async function requireRule(db: Queryable, zoneId: number, ruleId: string): Promise<void> {
  if (await isCountedRule(db, zoneId, ruleId)) return;
  const busiest = await listBusiestRules(db, zoneId, MAX_NAMED);
  const rule = `a rule with events in zone ${zoneId} (${nameKnown(busiest.map((one) => escapeText(one).slice(0, MAX_RULE_CHARS)))})`;
  throw new UsageError([`--rule "${escapeText(ruleId)}" must be ${rule}${guess(ruleId, busiest)}`]);
}

function guess(typed: string, known: readonly string[]): string {
  const meant = closestName(typed, known);
  return meant === null ? "" : `: did you mean ${escapeText(meant)}?`;
}
