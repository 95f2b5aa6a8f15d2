import type { ActionClass } from "#model/kinds.ts";
import { createDraw, type Draw } from "../sources/draw.ts";
import { drawZone } from "../sources/draw-zone.ts";
import { DAYS, START_MINUTE } from "../sources/zone.ts";

const DAY = 1_440;
/** Changes begin after so many days, because each needs a history. */
export const FLIPS_FROM_DAY = 3;
export const SILENCES_FROM_DAY = 5;
/** A rule with fewer events a day cannot be judged, and does not fall silent here. */
const LEAST_PER_DAY = 10;

interface DrawnChange {
  readonly ruleId: string;
  /** Epoch minutes, the last one included. */
  readonly from: number;
  readonly to: number;
}

interface DrawnFlip extends DrawnChange {
  /** Whether the rule blocks from then on. */
  readonly blocks: boolean;
}

interface DrawnSilence extends DrawnChange {
  /** Events of the rule on a usual day. */
  readonly perDay: number;
}

interface ChangedEvent {
  readonly minute: number;
  readonly ruleId: string;
  readonly address: string;
  readonly action: ActionClass;
}

export interface ChangedZone {
  readonly events: readonly ChangedEvent[];
  readonly flips: readonly DrawnFlip[];
  readonly silences: readonly DrawnSilence[];
  readonly zoneSilence: { readonly from: number; readonly to: number } | null;
}

interface Mode {
  /** The share of addresses that the rule blocks. */
  readonly blocked: number;
  readonly flip: DrawnFlip | null;
}

/**
 * Draws the actions of a zone of `drawZone`, with all of its visitors, nuisances and attacks: two fifths of the rules log,
 * two fifths block, one fifth blocks some addresses. One event of `exceptions` has the other action. One of the first
 * two kinds in twelve flips for good, one rule in eight stops for 6 to 48 hours, every third zone for 1 to 5 hours.
 */
export function drawChanges(seed: number, index: number, exceptions = 500): ChangedZone {
  const draw = createDraw(seed * 15_485_863 + index * 32_452_843 + 101);
  const events = drawZone(seed, index).events.map((event) => ({ ...event, ruleId: event.ruleId ?? "" }));
  const counts = Map.groupBy(events, ({ ruleId }) => ruleId);
  const rules = [...counts.keys()].sort();
  const modes = new Map(rules.map((ruleId) => [ruleId, drawMode(draw, ruleId)]));
  const silences = rules.flatMap((ruleId) =>
    drawSilence(draw, ruleId, (counts.get(ruleId)?.length ?? 0) / DAYS),
  );
  const zoneFrom = START_MINUTE + Math.floor(draw.between(SILENCES_FROM_DAY, DAYS - 0.5) * DAY);
  const isSilent = index % 3 === 0;
  const zoneSilence = isSilent ? { from: zoneFrom, to: zoneFrom + draw.integer(60, 300) } : null;
  const isIn = (minute: number, span: { from: number; to: number }) =>
    minute >= span.from && minute <= span.to;
  const kept = events.filter(
    ({ minute, ruleId }) =>
      !silences.some((one) => one.ruleId === ruleId && isIn(minute, one)) &&
      !(zoneSilence !== null && isIn(minute, zoneSilence)),
  );
  return {
    events: kept.map(({ minute, ruleId, ip }) => {
      const address = ip ?? "";
      const action = actionOf(draw, modes.get(ruleId), { minute, address, exceptions });
      return { minute, ruleId, address, action };
    }),
    flips: [...modes.values()].flatMap(({ flip }) => flip ?? []),
    silences,
    zoneSilence,
  };
}

function drawMode(draw: Draw, ruleId: string): Mode {
  const kind = draw.unit();
  if (kind >= 0.8) return { blocked: draw.between(0.1, 0.9), flip: null };
  const blocks = kind < 0.4;
  const from = START_MINUTE + Math.floor(draw.between(FLIPS_FROM_DAY, DAYS) * DAY);
  const flip = draw.chance(1 / 12) ? { ruleId, from, to: START_MINUTE + DAYS * DAY, blocks: !blocks } : null;
  return { blocked: blocks ? 1 : 0, flip };
}

function drawSilence(draw: Draw, ruleId: string, perDay: number): DrawnSilence[] {
  const from = START_MINUTE + Math.floor(draw.between(SILENCES_FROM_DAY, DAYS - 0.25) * DAY);
  const to = from + draw.integer(6 * 60, 48 * 60);
  return draw.chance(1 / 8) && perDay >= LEAST_PER_DAY ? [{ ruleId, from, to, perDay }] : [];
}

function actionOf(
  draw: Draw,
  mode: Mode | undefined,
  { minute, address, exceptions }: { minute: number; address: string; exceptions: number },
): ActionClass {
  const { blocked = 0, flip = null } = mode ?? {};
  const share = flip !== null && minute >= flip.from ? Number(flip.blocks) : blocked;
  const isBlocked = placeOf(address) < share;
  return isBlocked === draw.chance(1 / exceptions) ? "logged" : "blocked";
}

/** A number in [0, 1) that an address always has. */
function placeOf(address: string): number {
  let hash = 2_166_136_261;
  for (const letter of address) hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619);
  return ((hash ^ (hash >>> 15)) >>> 0) / 4_294_967_296;
}
