import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { DEFAULT_Z, FLOOR } from "#detection/rules/detection-settings.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import type { VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import type { ExclusionClause } from "#model/advice.ts";
import type { VerdictClass, VerdictTime } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { episodeOf, type World } from "./draw-world.ts";

const WEEK_MS = 7 * 86_400_000;

const noUsual = { asns: new Set<string>(), ja4s: new Set<string>(), paths: new Set<string>(), days: 0 };
const HEADERS = { hasSession: null, hasOwnReferer: null };
/** The facts stand beside each event, and what is shown of a request in `requests`. */
const withoutHeaders = (evidence: VerdictEvidence): VerdictEvidence => ({
  ...evidence,
  events: evidence.events.map((event) => ({
    ...event,
    facts: event.facts && { ...event.facts, ...HEADERS },
  })),
  requests: new Map([...evidence.requests].map(([id, details]) => [id, { ...details, ...HEADERS }])),
  usual: { ...evidence.usual, hasCookies: false },
});
const withoutRecords = (evidence: VerdictEvidence): VerdictEvidence => ({
  ...evidence,
  events: evidence.events.map((event) => ({ ...event, facts: null })),
  requests: new Map(),
});
const firstDay = (evidence: VerdictEvidence): VerdictEvidence => ({
  ...evidence,
  usual: { ...noUsual, hasCookies: evidence.usual.hasCookies },
});

/** What may be missing. */
export const LACKS: Readonly<Record<string, (evidence: VerdictEvidence) => VerdictEvidence>> = {
  nothing: (evidence) => evidence,
  JA4: (evidence) => ({ ...evidence, events: evidence.events.map((event) => ({ ...event, ja4: "" })) }),
  history: firstDay,
  "session headers": withoutHeaders,
  records: withoutRecords,
  "records and history": (evidence) => firstDay(withoutRecords(evidence)),
};

/** One verdict about an alert whose events mostly belong to one episode. */
export interface Judged {
  readonly lacks: string;
  readonly kind: string;
  readonly truth: VerdictClass;
  readonly look: VerdictTime;
  readonly isIncident: boolean;
  readonly verdict: Pick<StoredVerdict, "said" | "likeliest" | "odds" | "isLasting" | "classes" | "features">;
}

/** What a proposal would have silenced in the week after it. */
export interface Silenced {
  readonly truth: VerdictClass;
  readonly form: string;
  /** Shares of the rule's events of the misfire, and of all attack events of the zone. */
  readonly misfire: number | null;
  readonly attack: number | null;
  /** The same without the parameter. */
  readonly attackAnyParameter: number | null;
}

/** Replays a world through detection and the pure centre, and returns what was said about each alert. */
export function judgeWorld(
  world: World,
  lacks: readonly string[],
): { judged: Judged[]; silenced: Silenced[] } {
  const judged: Judged[] = [];
  const proposed: { at: number; episode: number; verdict: StoredVerdict }[] = [];
  const replay = createZoneReplay({
    z: DEFAULT_Z,
    floor: FLOOR,
    // The service judges spikes of one address too, although it only lists them.
    fewAddresses: 0,
    judge(evidence) {
      const episode = mainEpisode(evidence);
      const found = world.episodes[episode];
      // The replay cannot ask the operator of a crawler; a drawn crawler is one, and a forged one is not.
      const known = { ...evidence, crawler: found?.truth === "crawler" ? "Googlebot" : null };
      const verdict = judgeVerdict(known);
      if (found === undefined) return verdict;
      const { look, judgedAt: at, ruleId } = evidence;
      const one = { kind: found.kind, truth: found.truth, look, isIncident: ruleId === null };
      judged.push({ ...one, lacks: "nothing", verdict });
      if (look === "first" || look === "half-hour")
        for (const name of lacks)
          judged.push({ ...one, lacks: name, verdict: judgeVerdict(LACKS[name]?.(known) ?? known) });
      if (verdict.exclusion !== null) proposed.push({ at, episode, verdict });
      return verdict;
    },
  });
  for (const event of world.events) replay.take(event, Math.floor(event.at / 60_000));
  replay.finish();
  return { judged, silenced: proposed.map((one) => replayExclusion(world, one)) };
}

/** Returns the episode that most of the alert's events belong to; -1 if none has half of them. */
function mainEpisode({ events }: VerdictEvidence): number {
  const counts = new Map<number, number>();
  for (const { logId } of events) counts.set(episodeOf(logId), (counts.get(episodeOf(logId)) ?? 0) + 1);
  const [main = [-1, 0]] = [...counts].sort(([, a], [, b]) => b - a);
  return main[1] * 2 >= events.length ? main[0] : -1;
}

function replayExclusion(
  { events, episodes }: World,
  { at, episode, verdict }: { at: number; episode: number; verdict: StoredVerdict },
): Silenced {
  const { exclusion } = verdict;
  const clauses = exclusion?.clauses.map(toTest) ?? [];
  const week = events.filter((event) => event.at >= at && event.at < at + WEEK_MS);
  const rule = exclusion?.ruleId;
  const misfire = week.filter(({ logId, ruleId }) => episodeOf(logId) === episode && ruleId === rule);
  const attack = week.filter(({ logId }) => episodes[episodeOf(logId)]?.truth === "attack");
  const isSilent = (event: World["events"][number]) => clauses.some((test) => test(event, true));
  return {
    truth: episodes[episode]?.truth ?? "misfire",
    form: exclusion?.form ?? "refused",
    misfire: shareOf(misfire, isSilent),
    attack: shareOf(attack, isSilent),
    attackAnyParameter: shareOf(attack, (event) => clauses.some((test) => test(event, false))),
  };
}

function toTest({ ruleIds, template, method, parameter }: ExclusionClause) {
  const pattern = template === null ? null : new RegExp(toUrlPattern(template));
  return (event: World["events"][number], withParameter: boolean) =>
    ruleIds.includes(event.ruleId ?? "") &&
    (pattern?.test(event.url ?? "") ?? true) &&
    (method === null || method === event.method) &&
    (!withParameter || parameter === null || parameter === event.request?.parameter);
}

export function shareOf<T>(all: readonly T[], test: (one: T) => boolean): number | null {
  return all.length === 0 ? null : all.filter(test).length / all.length;
}
