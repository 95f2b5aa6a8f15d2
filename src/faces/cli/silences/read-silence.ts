import {
  SEVERITIES,
  SILENCE_SCOPES,
  type SilenceScope,
  SOURCE_TRAITS,
  type SourceTrait,
  SUBJECT_KINDS,
} from "#model/kinds.ts";
import { isAddressPattern } from "#model/source-traits.ts";
import { Matchers } from "#stages/alerting/silence.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readText } from "../options/read-actor.ts";
import { readRulePattern, readWords, readZones } from "../options/read-list.ts";
import { readRowIds } from "../options/read-row-id.ts";

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
export const MAX_MS = 90 * UNIT_MS.d;
const FOR_RULE = "a duration such as 30m, 2h or 7d, at most 90d";
const MAX_REASON_CHARS = 500;

export interface SilenceFlags {
  readonly alert?: readonly string[];
  readonly scope?: string;
  readonly zone?: readonly string[];
  readonly rule?: readonly string[];
  readonly severity?: readonly string[];
  readonly kind?: readonly string[];
  readonly ip?: readonly string[];
  readonly asn?: readonly string[];
  readonly country?: readonly string[];
  readonly ja4?: readonly string[];
  readonly url?: readonly string[];
  readonly for?: string;
  readonly reason?: string;
}

export interface ReadSilence {
  /** The alerts that are muted, or null if matchers are given. */
  readonly alertIds: readonly number[] | null;
  readonly scope: SilenceScope | undefined;
  readonly matchers: Matchers;
  readonly durationMs: number;
  readonly reason: string;
}

/** Reads the flags. The result may be used only after `read.finish()`. */
export function readSilence(read: FlagReader, flags: SilenceFlags): ReadSilence {
  const alertIds = flags.alert === undefined ? null : readRowIds(read, flags.alert, "alert");
  const scope = readScope(read, flags);
  const matchers = readMatchers(read, flags);
  if (alertIds !== null && Object.keys(matchers).length > 0)
    read.mistakes.push(
      "--alert must be given without --zone, --rule, --severity, --kind and sources: it already says what is muted",
    );
  if (alertIds === null && Object.keys(matchers).length === 0)
    read.mistakes.push(
      "--zone, --rule, --severity, --kind, a source (--ip, --asn, --country, --ja4, --url) or --alert must be given: a silence for every alert is refused",
    );
  const durationMs = readDuration(read, flags.for);
  if (flags.reason === undefined) read.wrong("reason", undefined, "the reason why the alerts are muted");
  const reason = readText(read, "reason", flags.reason, MAX_REASON_CHARS) ?? "";
  return { alertIds, scope, matchers, durationMs, reason };
}

function readScope(read: FlagReader, { scope, alert }: SilenceFlags): SilenceScope | undefined {
  if (scope !== undefined && alert === undefined) read.mistakes.push("--scope must be given with --alert");
  return readWords(read, "scope", scope === undefined ? undefined : [scope], SILENCE_SCOPES)?.[0];
}

function readMatchers(read: FlagReader, flags: SilenceFlags): Matchers {
  const zone = readZones(read, flags.zone);
  const severity = readWords(read, "severity", flags.severity, SEVERITIES);
  const kind = readWords(read, "kind", flags.kind, SUBJECT_KINDS);
  for (const rule of flags.rule ?? []) readRulePattern(read, rule);
  if (flags.rule !== undefined && kind?.every((one) => one === "self") === true)
    read.mistakes.push(
      "--rule must be left out with --kind self: alerts of Longwatch about itself have no rule",
    );
  return {
    ...(zone === undefined ? {} : { zone }),
    ...(flags.rule === undefined ? {} : { rule: [...new Set(flags.rule)] }),
    ...(severity === undefined ? {} : { severity }),
    ...(kind === undefined ? {} : { kind }),
    ...readSources(read, flags),
  };
}

export function readDuration(read: FlagReader, text: string | undefined): number {
  const [, amount = "0", unit = "m"] = /^(\d{1,6})([mhd])$/.exec(text ?? "") ?? [];
  const durationMs = Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (durationMs < UNIT_MS.m || durationMs > MAX_MS) read.wrong("for", text, FOR_RULE);
  return durationMs;
}

function readSources(read: FlagReader, flags: SilenceFlags): Pick<Matchers, SourceTrait> {
  for (const ip of flags.ip ?? [])
    if (!isAddressPattern(ip)) read.wrong("ip", ip, "an address or a network such as 198.51.100.0/24");
  const given = SOURCE_TRAITS.filter((trait) => flags[trait] !== undefined);
  return Object.fromEntries(given.map((trait) => [trait, [...new Set(flags[trait])]]));
}
