/** Generates the events of a zone, minute by minute. */
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { createCast } from "./actors.ts";
import { type Attack, attackersOf, attackName, eventsOfAttack } from "./attack.ts";
import { type Band, chooseBand, profileOf, storyOf } from "./attack-kinds.ts";
import {
  type Crew,
  compareDrafts,
  type Draft,
  drawEvent,
  drawRequest,
  type EventKey,
  type Lateness,
} from "./draft.ts";
import { createUrlBook } from "./payloads.ts";
import { createRandom, hashText } from "./random.ts";
import { RULES, type Rule, ruleById } from "./rules.ts";
import type { Story } from "./stories.ts";

/** One zone's rate over time. A changed rate applies from its minute on; the past keeps the old one. */
export interface ZonePlan {
  readonly id: number;
  readonly firstEventMs: number;
  /** When the zone was first served. Nothing was visible before. */
  readonly createdAtMs: number;
  readonly rates: readonly { readonly sinceMs: number; readonly eventsPerSecond: number }[];
}

const ORDINALS_PER_RULE = 65_536;
const WEIGHT_SUM = RULES.reduce((sum, rule) => sum + rule.weight, 0);
const ZONE_STRIDE = 0x9e3779b1;

export type Traffic = ReturnType<typeof createTraffic>;

/**
 * Returns all events of a seed as a function of zone and absolute minute. Attacks are appended, never removed,
 * because an event's key holds the attack's position.
 */
export function createTraffic(options: { seed: string; lateness: Lateness }) {
  const { seed, lateness } = options;
  const seedKey = hashText(seed);
  const random = createRandom();
  const crewRandom = createRandom();
  const cast = createCast(seed);
  const urlOf = createUrlBook();
  const scripted: Attack[] = [];
  /** The scripts that change other events and have none of their own. */
  const effects: Attack[] = [];
  const attacks: { attack: Attack; key: number; crew: Crew; band: Band | null }[] = [];

  const zoneKey = (zoneId: number) => (seedKey + Math.imul(zoneId, ZONE_STRIDE)) | 0;
  const context = (zoneId: number) => ({ random, cast, urlOf, lateness, zoneId });

  function drawEveryday(zoneId: number, minute: number, slot: number): Draft {
    const rule = RULES[Math.floor(slot / ORDINALS_PER_RULE)];
    if (rule === undefined) throw new RangeError(`slot ${slot} names no rule`);
    random.reseed(zoneKey(zoneId), minute, slot, 0);
    return drawEvent(context(zoneId), { source: 0, slot }, rule, { minuteMs: minute * MINUTE_MS });
  }

  /** Shown events stay as they were shown, so an effect begins no earlier than it was added. */
  function lastsAt({ startMs, addedAtMs, durationMs }: Attack, timeMs: number): boolean {
    return timeMs >= Math.max(startMs, addedAtMs) && timeMs < startMs + durationMs;
  }

  function isSilent(zoneId: number, { at, rule }: Draft): boolean {
    return effects.some(
      (one) => one.kind === "silence" && one.zone === zoneId && one.rule === rule.ruleId && lastsAt(one, at),
    );
  }

  /** Returns the event; one that would become visible during an outage becomes visible at its end. */
  function delayed(zoneId: number, draft: Draft): Draft {
    const outage = effects.find(
      (one) => one.kind === "outage" && one.zone === zoneId && lastsAt(one, draft.visibleAt),
    );
    return outage === undefined ? draft : { ...draft, visibleAt: outage.startMs + outage.durationMs };
  }

  /** Draws an event of a story: the events of one request have the same time and the same client. */
  function drawStory(
    { attack, key, band }: (typeof attacks)[number],
    story: Story,
    eventKey: EventKey,
  ): Draft {
    const request = eventKey.slot - (eventKey.slot % story.rules.length);
    const reseed = () => random.reseed(zoneKey(attack.zone), key, request, 2);
    reseed();
    const at = attack.startMs + Math.floor(((request + random.fraction()) * 1_000) / attack.ratePerSecond);
    const actors = band?.actors ?? [];
    const actor = actors[(hashText(`${key}/${request}`) >>> 0) % actors.length];
    if (actor === undefined) throw new RangeError(`${attack.kind} has no clients`);
    random.reseed(zoneKey(attack.zone), key, eventKey.slot, 1);
    return drawRequest(context(attack.zone), eventKey, story, { actor, reseed, at });
  }

  function drawAttack(source: number, slot: number): Draft {
    const entry = attacks[source - 1];
    if (entry === undefined) throw new RangeError(`no attack at position ${source - 1}`);
    const { attack, key, crew, band } = entry;
    const story = storyOf(attack.kind);
    if (story !== null) return drawStory(entry, story, { source, slot });
    random.reseed(zoneKey(attack.zone), key, slot, 1);
    const at = attack.startMs + Math.floor(((slot + random.fraction()) * 1_000) / attack.ratePerSecond);
    if (band === null)
      return drawEvent(context(attack.zone), { source, slot }, ruleById(attack.rule), { at }, crew);
    const spread = hashText(`${key}/${slot}`) >>> 0;
    const rule = band.rules[spread % band.rules.length] ?? ruleById(attack.rule);
    // Every client has its turn, and the place of its turn says nothing about the rule.
    const { turnMs, isFlip = false } = profileOf(attack.kind);
    const turn = turnMs === undefined ? slot : Math.floor((at - attack.startMs) / turnMs);
    const actor = band.actors[turn % band.actors.length];
    const one = { actors: actor === undefined ? [] : [actor], ...(band.isOnePath ? { path: 0 } : {}) };
    const draft = drawEvent(context(attack.zone), { source, slot }, rule, { at }, one);
    const isBefore = at < attack.startMs + attack.durationMs / 2;
    return isFlip ? { ...draft, action: isBefore ? "log" : "block" } : draft;
  }

  function openBand({ kind, zone, rule }: Attack, key: number): Band | null {
    if (kind === "rule") return null;
    crewRandom.reseed(seedKey, profileOf(kind).isFamiliar === true ? zone : key, 0x62616e64, 1);
    return chooseBand(kind, rule, cast, crewRandom);
  }

  function chooseCrew(key: number): Crew {
    crewRandom.reseed(seedKey, key, 0x63726577, 1);
    const actors = Array.from({ length: 3 + crewRandom.below(4) }, () => crewRandom.pick(cast.actors));
    return { actors, path: 0, payload: 0 };
  }

  function* attackDrafts(zoneId: number, minuteMs: number): Generator<Draft> {
    for (const [position, { attack }] of attacks.entries()) {
      const endMs = attack.startMs + attack.durationMs;
      if (attack.zone !== zoneId || endMs <= minuteMs || attack.startMs >= minuteMs + MINUTE_MS) continue;
      const perMs = attack.ratePerSecond / 1_000;
      // The events of one request happen at the time of its first.
      const margin = storyOf(attack.kind)?.rules.length ?? 1;
      const first = Math.max(0, Math.floor((minuteMs - attack.startMs) * perMs) - margin);
      const last = Math.min(
        eventsOfAttack(attack),
        Math.ceil((minuteMs + MINUTE_MS - attack.startMs) * perMs) + margin,
      );
      for (let slot = first; slot < last; slot++) yield drawAttack(position + 1, slot);
    }
  }

  return {
    /** Returns the events of one minute of a zone in time order; empty before the zone's first event. */
    minute(plan: ZonePlan, minute: number): Draft[] {
      const minuteMs = minute * MINUTE_MS;
      const rate = plan.rates.findLast((entry) => entry.sinceMs <= minuteMs) ?? plan.rates[0];
      const zone = { id: plan.id, key: zoneKey(plan.id), eventsPerMinute: (rate?.eventsPerSecond ?? 0) * 60 };
      const drafts: Draft[] = [];
      for (const [ruleIndex, rule] of RULES.entries()) {
        const count = Math.min(countInMinute(zone, rule, ruleIndex, WEIGHT_SUM, minute), ORDINALS_PER_RULE);
        for (let ordinal = 0; ordinal < count; ordinal++) {
          drafts.push(drawEveryday(plan.id, minute, ruleIndex * ORDINALS_PER_RULE + ordinal));
        }
      }
      const everyday = drafts.filter((draft) => draft.at >= plan.firstEventMs && !isSilent(plan.id, draft));
      const inMinute = [...attackDrafts(plan.id, minuteMs)].filter(
        (draft) => draft.at >= minuteMs && draft.at < minuteMs + MINUTE_MS,
      );
      return [...everyday, ...inMinute].map((draft) => delayed(plan.id, draft)).sort(compareDrafts);
    },

    /** Returns one event again, from its stored key and time. */
    redraw(zoneId: number, at: number, key: EventKey): Draft {
      const { source, slot } = key;
      const draft =
        source === 0 ? drawEveryday(zoneId, Math.floor(at / MINUTE_MS), slot) : drawAttack(source, slot);
      return delayed(zoneId, draft);
    },

    /** Returns false when the same attack is already known. */
    addAttack(attack: Attack): boolean {
      const name = attackName(attack);
      if (scripted.some((known) => attackName(known) === name)) return false;
      scripted.push(attack);
      if (profileOf(attack.kind).clients === 0) effects.push(attack);
      for (const one of attackersOf(attack)) {
        const key = hashText(attackName(one));
        attacks.push({ attack: one, key, crew: chooseCrew(key), band: openBand(one, key) });
      }
      return true;
    },

    attacks: (): readonly Attack[] => scripted,

    /** Returns when the event's origin was added. An event of the past was not visible before that. */
    knownSinceMs(plan: ZonePlan, source: number): number {
      return Math.max(plan.createdAtMs, attacks[source - 1]?.attack.addedAtMs ?? 0);
    },
  };
}

/** A rule has at most one burst per block of this many minutes. */
const BURST_BLOCK_MINUTES = 720;
const BURST_SHARE = 0.35;
/** Above this mean the normal quantile is used, because e^-mean would lose its digits. */
const NORMAL_FROM = 60;

const random = createRandom();

/** Returns the factor of a minute, with mean 1 over a day. The peak's hour differs between zones. */
function daily(minute: number, zoneId: number): number {
  const shift = (zoneId * 137) % 360;
  return 1 + 0.6 * Math.sin((2 * Math.PI * (minute - 540 - shift)) / MINUTES_PER_DAY);
}

interface Burst {
  readonly zoneKey: number;
  readonly block: number;
  readonly startsAt: number;
  readonly minutes: number;
  readonly factor: number;
}

/** The last burst of each rule: minutes are drawn in order, and a block has hundreds of them. */
const lastBursts: Burst[] = [];

function drawBurst(zoneKey: number, block: number, ruleIndex: number): Burst {
  random.reseed(zoneKey, block, ruleIndex, 0x62727374);
  if (random.fraction() >= BURST_SHARE) return { zoneKey, block, startsAt: 0, minutes: 0, factor: 1 };
  const startsAt = block * BURST_BLOCK_MINUTES + random.below(BURST_BLOCK_MINUTES - 60);
  const minutes = 5 + random.below(36);
  return { zoneKey, block, startsAt, minutes, factor: 2 + random.fraction() * 3 };
}

function burst(zoneKey: number, ruleIndex: number, minute: number): number {
  const block = Math.floor(minute / BURST_BLOCK_MINUTES);
  let last = lastBursts[ruleIndex];
  if (last?.zoneKey !== zoneKey || last.block !== block) {
    last = drawBurst(zoneKey, block, ruleIndex);
    lastBursts[ruleIndex] = last;
  }
  const { startsAt, minutes, factor } = last;
  return minute >= startsAt && minute < startsAt + minutes ? factor : 1;
}

/** Returns the logistic quantile, which is monotone and close enough to the normal one for counts. */
function normalQuantile(share: number): number {
  return Math.log(share / (1 - share)) / 1.702;
}

/** Returns the Poisson count at one quantile. With the same `share`, a larger mean never gives a smaller count. */
function poissonQuantile(mean: number, share: number): number {
  if (mean <= 0) return 0;
  if (mean > NORMAL_FROM) {
    const bounded = Math.min(Math.max(share, 1e-9), 1 - 1e-9);
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normalQuantile(bounded)));
  }
  let probability = Math.exp(-mean);
  let cumulated = probability;
  let count = 0;
  while (share > cumulated && count < 10 * NORMAL_FROM) {
    count++;
    probability *= mean / count;
    cumulated += probability;
  }
  return count;
}

/**
 * Returns how many events a rule has in one minute: a function of the zone's key, the rule and the absolute minute. A
 * higher rate adds events and keeps those of a lower one.
 */
function countInMinute(
  zone: { id: number; key: number; eventsPerMinute: number },
  rule: Rule,
  ruleIndex: number,
  weightSum: number,
  minute: number,
): number {
  const steady =
    rule.weight === 0 ? rule.perDay / MINUTES_PER_DAY : (zone.eventsPerMinute * rule.weight) / weightSum;
  const rhythm = rule.weight === 0 ? 1 : daily(minute, zone.id) * burst(zone.key, ruleIndex, minute);
  random.reseed(zone.key, minute, ruleIndex, 0x636e74);
  return poissonQuantile(steady * rhythm, random.fraction());
}
