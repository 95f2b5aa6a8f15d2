import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createDice } from "./dice.ts";
import { shownAddress, toLine } from "./entries.ts";
import { drawEveryday } from "./everyday.ts";
import type { CaseLabel, World, ZoneLabel } from "./labels.ts";
import { type CaseTruth, type Half, halfOf, type Situation } from "./situations/situation.ts";
import { SITUATIONS } from "./situations/situations.ts";
import { createStage, type Event, type Stage } from "./stage.ts";
import { drawStreams, hostOfStreams } from "./streams.ts";
import { drawZone, type Zone } from "./zones.ts";

export interface WorldOptions {
  readonly world: World;
  readonly seed: number;
  readonly repeats: number;
  /** Left out: both halves. A situation is the same, whatever is drawn beside it. */
  readonly half?: Half | undefined;
  /** Left out: 8 to 11 days of history, or some hours for a first day. */
  readonly historyDays?: number;
}

/** A zone with its situation, and what is true of it. `lines` renders the events in the order of time. */
export interface DrawnZone {
  readonly label: ZoneLabel;
  readonly cases: readonly CaseLabel[];
  readonly lines: () => string[];
}

const AFTER_MS = 90 * MINUTE_MS;
const QUIET_MS = 6 * HOUR_MS;
/** What a case must at least send for a message to be due. Requests; for misfires and the like those that were stopped. */
const LEAST = {
  attack: 20,
  scanner: 60,
  misfire: 60,
  "broken-client": 100,
  crawler: 100,
  nothing: 0,
} as const;
const MOST_NAMES = 3_000;

export const situationsOf = (half: Half | undefined): readonly Situation[] =>
  half === undefined ? SITUATIONS : SITUATIONS.filter(({ name }) => halfOf(name) === half);

/** Draws a zone for each situation and repeat, one after the other. */
export function* drawWorld(options: WorldOptions): Generator<DrawnZone> {
  for (let repeat = 0; repeat < options.repeats; repeat += 1)
    for (const situation of situationsOf(options.half)) yield drawSituation(situation, repeat, options);
}

export function drawSituation(
  situation: Situation,
  repeat: number,
  { world, seed, historyDays }: WorldOptions,
): DrawnZone {
  const { name } = situation;
  const key = `${world}/${seed}/${repeat}/${name}`;
  const alone = drawZone(key, situation.zone ?? {}, historyDays);
  const zone =
    world === "streams" ? { ...alone, site: { ...alone.site, host: hostOfStreams(alone) } } : alone;
  const stage = createStage(zone, createDice(key));
  const isQuiet = situation.cases["main"]?.truth === "nothing";
  playSituation(stage, situation, isQuiet);
  const lastMs = stage.events.reduce((last, { at }) => Math.max(last, at), zone.situationMs);
  const endMs = isQuiet ? zone.situationMs + QUIET_MS : lastMs + AFTER_MS;
  const everyday = createStage(zone, createDice(`${key}/everyday`));
  if (world === "requests") drawEveryday(everyday, endMs);
  const shown = [...everyday.events, ...stage.events].filter(({ at }) => at >= zone.startMs && at < endMs);
  const drawn = shown.map((event) => ({ at: event.at, event }));
  const background = world === "streams" ? drawStreams(zone, key, endMs) : [];
  const all = [...drawn, ...background].sort((a, b) => a.at - b.at);
  const lines = () => {
    const ids = createDice(`${key}/ids`);
    return all.map((one) => ("event" in one ? toLine(zone, one.event, ids) : one.line));
  };
  const label: ZoneLabel = {
    zone: String(zone.id),
    situation: name,
    half: halfOf(name),
    repeat,
    site: zone.kind,
    paranoia: zone.paranoia,
    mode: zone.mode,
    addresses: zone.addresses,
    firstDay: zone.isFirstDay,
    from: new Date(all[0]?.at ?? zone.startMs).toISOString(),
    to: new Date(all.at(-1)?.at ?? endMs).toISOString(),
    events: all.length,
  };
  return { label, cases: isQuiet ? [] : labelCases(situation, repeat, zone, stage.events), lines };
}

function playSituation(stage: Stage, { cases, play }: Situation, isQuiet: boolean): void {
  const nameOf = (of = "main") => {
    if (cases[of] === undefined) throw new RangeError(`no case "${of}" in the situation`);
    return isQuiet ? null : of;
  };
  const { dice, site, start, pace } = stage;
  play({
    dice,
    site,
    start,
    pace,
    send: (at, request, of) => void stage.send(at, request, nameOf(of)),
    visit: (at, request, of) => stage.visit(at, request, nameOf(of)),
  });
}

function labelCases(
  { name, cases }: Situation,
  repeat: number,
  zone: Zone,
  events: readonly Event[],
): CaseLabel[] {
  const nameOf = (of: string) => `${name}${of === "main" ? "" : `/${of}`}#${repeat + 1}`;
  return Object.entries(cases).map(([of, truth]) => {
    const own = events.filter((event) => event.of === of);
    if (own.length === 0)
      throw new RangeError(`the situation ${name} sends nothing that a rule matches in ${of}`);
    const requests = Map.groupBy(own, ({ requestId }) => requestId);
    const stopped = [...requests.values()].filter((hits) =>
      hits.some(({ action }) => action !== "log"),
    ).length;
    const clients = own.map(({ request }) => request.client);
    const distinct = (values: readonly string[]) => [...new Set(values)].slice(0, MOST_NAMES);
    const addresses = clients.flatMap(({ ip }) => Object.values(shownAddress(zone, ip)));
    return {
      case: nameOf(of),
      situation: name,
      half: halfOf(name),
      zone: String(zone.id),
      truth: truth.truth,
      accept: acceptedOf(truth),
      tell: truth.tell ?? (isEnough(truth, requests.size, stopped) ? "must" : "may"),
      page: truth.page ?? (truth.truth === "misfire" && stopped === 0 ? "no" : "may"),
      wave: truth.isWave === true ? nameOf("main") : null,
      firstDay: zone.isFirstDay,
      from: new Date(Math.min(...own.map(({ at }) => at))).toISOString(),
      to: new Date(Math.max(...own.map(({ at }) => at))).toISOString(),
      requests: requests.size,
      events: own.length,
      stopped,
      addresses: distinct(addresses),
      senders: new Set(clients.map(({ ip }) => ip)).size,
      asns: distinct(clients.map(({ asn }) => asn)),
      agents: distinct(clients.map(({ ua }) => ua)),
      ja4s: distinct(clients.map(({ ja4 }) => ja4)),
      paths: distinct(own.map(({ request }) => request.path)),
      rules: Object.fromEntries(
        [...Map.groupBy(own, ({ hit }) => hit.rule)].map(([rule, all]) => [rule, all.length]),
      ),
    };
  });
}

function acceptedOf({ truth, accept }: CaseTruth): CaseLabel["accept"] {
  if (accept !== undefined) return [...accept];
  return truth === "attack" || truth === "scanner" ? ["attack", "scanner"] : [truth];
}

function isEnough({ truth }: CaseTruth, requests: number, stopped: number): boolean {
  const isHostile = truth === "attack" || truth === "scanner";
  return (isHostile ? requests : stopped) >= LEAST[truth];
}
