import { z } from "zod";
import { ATTACK_KINDS, profileOf } from "./attack-kinds.ts";

/** A scripted attack or nuisance: steady events. It is saved, so its events stay the same. */
export const Attack = z.strictObject({
  kind: z.enum(ATTACK_KINDS, `kind must be one of ${ATTACK_KINDS.join(", ")}`).default("rule"),
  zone: z.int(),
  rule: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "must be a rule id of 1 to 64 letters, digits, _ or -"),
  startMs: z.int().min(0),
  durationMs: z
    .int()
    .min(1_000)
    .max(24 * 3_600_000),
  ratePerSecond: z.number().positive().max(10_000),
  /** When the attack was added. The events of an attack scripted into the past were not visible before this. */
  addedAtMs: z.int(),
});
export type Attack = z.infer<typeof Attack>;

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const MAX_EVENTS = 5_000_000;
const KEYS = ["kind", "zone", "rule", "start", "duration", "rate"] as const;

function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text);
  const unit = UNIT_MS[match?.[2] ?? ""];
  return unit === undefined ? undefined : Math.round(Number(match?.[1]) * unit);
}

function parseStart(text: string, nowMs: number): number | undefined {
  if (/^[+-]/.test(text)) {
    const offset = parseDuration(text.slice(1));
    return offset === undefined ? undefined : nowMs + (text.startsWith("-") ? -offset : offset);
  }
  if (/^\d{10,}$/.test(text)) return Number(text);
  const parsed = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(parsed) ? undefined : parsed;
}

function parsePairs(text: string, mistakes: string[]): Map<string, string> {
  const pairs = new Map<string, string>();
  for (const part of text.split(",")) {
    const [key = "", value = ""] = part.split(/=(.*)/s).map((piece) => piece.trim());
    if (!KEYS.some((known) => known === key)) mistakes.push(`"${key}" is not one of ${KEYS.join(", ")}`);
    else pairs.set(key, value);
  }
  return pairs;
}

/**
 * Reads `kind=rule,zone=101,rule=942100,start=+60s,duration=10m,rate=40/s`. Other kinds choose their rules. `start` is
 * relative to now (`+60s`, `-2h`), an ISO date-time or epoch milliseconds. Returns every mistake, each with the value
 * and the rule.
 */
export function parseAttack(text: string, nowMs: number): { attack: Attack } | { mistakes: string[] } {
  const mistakes: string[] = [];
  const pairs = parsePairs(text, mistakes);
  const value = (key: (typeof KEYS)[number]) => pairs.get(key) ?? "";

  const kind = Attack.shape.kind.safeParse(pairs.get("kind"));
  const profile = profileOf(kind.data ?? "rule");
  if (profile.rules !== "given" && pairs.has("rule"))
    mistakes.push(`rule "${value("rule")}" must be left out: kind ${kind.data} takes no rule`);
  if (profile.clients === 0 && pairs.has("rate"))
    mistakes.push(`rate "${value("rate")}" must be left out: kind ${kind.data} adds no events`);
  const zone = /^\d+$/.test(value("zone")) ? Number(value("zone")) : undefined;
  if (zone === undefined) mistakes.push(`zone "${value("zone")}" must be the number of a shield zone`);
  const startMs = parseStart(value("start") || "+0s", nowMs);
  if (startMs === undefined)
    mistakes.push(`start "${value("start")}" must be +60s, an ISO date-time or epoch milliseconds`);
  const durationMs = parseDuration(value("duration") || profile.duration);
  if (durationMs === undefined)
    mistakes.push(`duration "${value("duration")}" must be a number with ms, s, m or h`);
  const rate = /^(\d+(?:\.\d+)?)(?:\/(s|m|h))?$/.exec(value("rate") || profile.rate);
  if (rate === null) mistakes.push(`rate "${value("rate")}" must be a number per s, m or h, such as 40/s`);

  const perMs = Number(rate?.[1]) / (UNIT_MS[rate?.[2] ?? "s"] ?? 1_000);
  const parsed = Attack.safeParse({
    kind: pairs.get("kind"),
    zone: zone ?? 0,
    rule: profile.rules === "given" ? value("rule") : "several",
    startMs: startMs ?? 0,
    durationMs: durationMs ?? 1_000,
    ratePerSecond: rate === null ? 1 : perMs * 1_000,
    addedAtMs: nowMs,
  });
  if (!parsed.success) {
    mistakes.push(...parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`));
  }
  if (mistakes.length > 0 || !parsed.success)
    return { mistakes: mistakes.map((m) => `attack "${text}": ${m}`) };
  if (eventsOfAttack(parsed.data) > MAX_EVENTS) {
    return { mistakes: [`attack "${text}": rate times duration must be at most ${MAX_EVENTS} events`] };
  }
  return { attack: parsed.data };
}

/**
 * Returns the attack's name. Two scripts of the same attack have one name, so a restart that repeats an absolute
 * attack adds nothing.
 */
export function attackName(attack: Attack): string {
  const { kind, zone, rule, startMs, durationMs, ratePerSecond } = attack;
  // The events follow from the name, and attacks that were saved without a kind keep theirs.
  const name = [zone, rule, startMs, durationMs, ratePerSecond];
  return (kind === "rule" ? name : [kind, ...name]).join("/");
}

/** Returns the attack, or one attack for each of its attackers: each lasts two thirds of the whole. */
export function attackersOf(attack: Attack): Attack[] {
  const { attackers = 1 } = profileOf(attack.kind);
  if (attackers === 1) return [attack];
  const durationMs = Math.ceil((attack.durationMs * 2) / 3);
  const everyMs = (attack.durationMs - durationMs) / (attackers - 1);
  return Array.from({ length: attackers }, (_, i) => {
    return { ...attack, startMs: attack.startMs + Math.floor(i * everyMs), durationMs };
  });
}

export function eventsOfAttack(attack: Attack): number {
  if (profileOf(attack.kind).clients === 0) return 0;
  return Math.floor((attack.durationMs * attack.ratePerSecond) / 1_000);
}
