/** Draws a month of a zone, with several situations, and knows whose each request is. */

import { DAY_MS } from "#lib/units.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { type FactColumns, readParsedRequest, toFactColumns, UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { ReviewChoice } from "#model/review.ts";
import { createDice, type Dice } from "../message/dice.ts";
import { toLine } from "../message/entries.ts";
import { drawEveryday, PROBES } from "../message/everyday.ts";
import { type Half, halfOf, type Situation } from "../message/situations/situation.ts";
import { SITUATIONS } from "../message/situations/situations.ts";
import { createStage, type Event } from "../message/stage.ts";
import { drawZone, type ZoneWish } from "../message/zones.ts";

const DRAWN_DAYS = 30;
const SITUATIONS_PER_ZONE = 8;

/** Whose a request is. */
export type Truth = "hostile" | "machine" | "visitor";

/** One event as it is stored, with the truth about its request. */
export interface DrawnEvent extends FactColumns {
  readonly at: number;
  readonly truth: Truth;
  /** The situation that it is of; empty for everyday traffic. */
  readonly situation: string;
  readonly logId: string;
  readonly feature: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly asn: string;
  readonly action: string;
  readonly path: string;
}

const TRUTHS = {
  attack: "hostile",
  scanner: "hostile",
  misfire: "visitor",
  "broken-client": "machine",
  crawler: "machine",
  nothing: "visitor",
} as const satisfies Record<string, Truth>;

interface DrawnZone {
  readonly name: string;
  /** The first event of the month, and its end; epoch ms. */
  readonly from: number;
  readonly to: number;
  readonly events: readonly DrawnEvent[];
}

/** Draws zones whose situations are all of one half. Their days are drawn, so some are learnt from and some are judged. */
export function* drawZones(half: Half, seed: number, count: number): Generator<DrawnZone> {
  const own = SITUATIONS.filter(({ name }) => halfOf(name) === half);
  for (let index = 0; index < count; index += 1) yield drawOne(own, `review/${seed}/${half}/${index}`);
}

function drawOne(situations: readonly Situation[], key: string): DrawnZone {
  const dice = createDice(key);
  const main = dice.pick(situations);
  const { isFirstDay: _first, isLevelRaised: _raised, hours: _hours, ...wish }: ZoneWish = main.zone ?? {};
  const zone = drawZone(key, { ...wish, mode: dice.chance(0.6) ? "log" : "block" }, DRAWN_DAYS);
  const to = Math.ceil(zone.situationMs / DAY_MS) * DAY_MS;
  const from = to - DRAWN_DAYS * DAY_MS;
  const month = { ...zone, startMs: from };
  const fitting = situations.filter(
    ({ zone: other }) => other?.kinds === undefined || other.kinds.includes(zone.kind),
  );
  const everyday = createStage(month, createDice(`${key}/everyday`));
  drawEveryday(everyday, to);
  const drawn = everyday.events.map((event) => ({ event, truth: truthOf(event), situation: "" }));
  for (const { name, cases, play } of [main, ...dice.shuffle(fitting)].slice(0, SITUATIONS_PER_ZONE)) {
    const isQuiet = cases["main"]?.truth === "nothing";
    for (const start of startsOf(dice, from, cases["main"]?.truth === "misfire")) {
      const stage = createStage({ ...month, situationMs: start }, createDice(`${key}/${name}/${start}`));
      const { site, pace } = stage;
      play({
        dice: stage.dice,
        site,
        start,
        pace,
        send: (at, request, of = "main") => void stage.send(at, request, of),
        visit: (at, request, of = "main") => stage.visit(at, request, of),
      });
      for (const event of stage.events)
        drawn.push({
          event,
          truth: isQuiet ? truthOf(event) : TRUTHS[cases[event.of ?? "main"]?.truth ?? "nothing"],
          situation: name,
        });
    }
  }
  const ids = createDice(`${key}/ids`);
  const events = drawn
    .filter(({ event }) => event.at >= from && event.at < to)
    .sort((one, other) => one.event.at - other.event.at)
    .map(({ event, truth, situation }) => ({ ...toEvent(toLine(month, event, ids)), truth, situation }));
  return { name: key, from, to, events };
}

/** Returns whether a choice blocks an event. `toTemplate` is that of the counts which the choice was planned from. */
export function isBlocked(
  { ruleId, path }: DrawnEvent,
  { block, exclusions }: ReviewChoice,
  toTemplate: (path: string) => string,
): boolean {
  return (
    block.includes(ruleId) && !exclusions.some((one) => one.rule === ruleId && one.path === toTemplate(path))
  );
}

/**
 * Returns when a situation begins. What misfires is a part of the site, so it comes again every few days from a day of the month on; one of ten is new in the
 * judged week. Everything else comes once.
 */
function startsOf(dice: Dice, from: number, isMisfire: boolean): number[] {
  const first = from + dice.between(0.5, DRAWN_DAYS - 0.5) * DAY_MS;
  if (!isMisfire) return [first];
  const isNew = dice.chance(0.1);
  const begins = isNew ? from + (DRAWN_DAYS - 6) * DAY_MS : from + dice.between(0.5, 18) * DAY_MS;
  const starts: number[] = [];
  for (let at = begins; at < from + (DRAWN_DAYS - 0.5) * DAY_MS; at += dice.between(2, 6) * DAY_MS)
    starts.push(at);
  return starts;
}

function truthOf({ request: { client, path } }: Event): Truth {
  if (PROBES.includes(path)) return "hostile";
  return client.isBrowser ? "visitor" : "machine";
}

function toEvent(line: string): Omit<DrawnEvent, "truth" | "situation"> {
  const entry = JSON.parse(line) as {
    logId: string;
    timestamp: number;
    log: string;
    labels: Record<string, string>;
    fields?: Record<string, string>;
  };
  const log = JSON.parse(entry.log) as { Url: string; RemoteIp: string };
  const of = (name: string) => entry.fields?.[name] ?? entry.labels[name] ?? "";
  const url = entry.fields?.["url"] ?? log.Url;
  const [ua, ruleId] = [of("ua"), of("ruleId")];
  const facts = toFactColumns(readParsedRequest(entry, { url, ua, ruleId }, "key"));
  return {
    ...UNKNOWN_FACTS,
    ...facts,
    at: entry.timestamp,
    logId: entry.logId,
    feature: of("feature"),
    ruleId,
    ip: of("ip") || log.RemoteIp,
    ja4: of("ja4"),
    ua,
    url,
    asn: of("asn"),
    action: of("action") || (entry.labels["status"] ?? ""),
    path: toUrlPart("path", url),
  };
}
