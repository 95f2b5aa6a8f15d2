import { DAY_MS, MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import { assignMessages, isNews } from "./assign-messages.ts";
import type { CaseLabel, Labels, ZoneLabel } from "./labels.ts";
import type { Message } from "./read-messages.ts";

const LATER_MS = 30 * MINUTE_MS;
const PAGES = new Set(["error", "critical"]);
const FEW_RULES = 15;

/** What was said of one case. */
export interface ScoredCase {
  readonly label: CaseLabel;
  readonly isNotified: boolean;
  readonly seconds: number | null;
  /** The verdict of the first message, and the newest one half an hour later; null if the case was not told. */
  readonly first: string | null;
  readonly later: string | null;
  readonly isFirstRight: boolean;
  readonly isLaterRight: boolean;
  readonly isCalledMisfire: boolean;
  readonly isCritical: boolean;
  readonly isPaged: boolean;
  readonly beginsAsInfo: boolean;
  readonly alerts: number;
  readonly messages: number;
}

/** What was said of a zone's everyday traffic. */
interface ScoredZone {
  readonly label: ZoneLabel;
  readonly days: number;
  readonly falseAlerts: number;
  readonly falsePages: number;
}

export interface Scored {
  readonly cases: readonly ScoredCase[];
  readonly zones: readonly ScoredZone[];
}

export const isHostile = ({ truth }: Pick<CaseLabel, "truth">) => truth === "attack" || truth === "scanner";

/** Returns whether a case is one hostile address with few rules, of which a message is due. */
export const isLoneAddress = (label: CaseLabel) =>
  isHostile(label) &&
  label.senders === 1 &&
  label.tell === "must" &&
  Object.keys(label.rules).length < FEW_RULES;

/** Judges the messages by the labels of their world. */
export function scoreMessages({ zones, cases }: Labels, messages: readonly Message[]): Scored {
  const casesOf = Map.groupBy(cases, ({ zone }) => zone);
  const messagesOf = Map.groupBy(messages, ({ zone }) => zone);
  const scored = zones.map((label) => {
    const own = casesOf.get(label.zone) ?? [];
    const { byCase, outside } = assignMessages(messagesOf.get(label.zone) ?? [], own);
    return {
      cases: own.map((one) => scoreCase(one, byCase.get(one.case) ?? [])),
      zone: scoreZone(label, outside),
    };
  });
  return { cases: scored.flatMap((one) => one.cases), zones: scored.map(({ zone }) => zone) };
}

function scoreCase(label: CaseLabel, messages: readonly Message[]): ScoredCase {
  const first = messages.find(isNews);
  const said = messages.filter((one) => first !== undefined && one.at <= first.at + LATER_MS);
  const firstWord = first === undefined ? null : first.verdict || "unclear";
  const later = first === undefined ? null : wordOf(said);
  const isRight = (word: string | null) => label.accept.some((one) => one === word);
  return {
    label,
    isNotified: first !== undefined,
    seconds: first === undefined ? null : Math.max(0, (first.at - Date.parse(label.from)) / SECOND_MS),
    first: firstWord,
    later,
    isFirstRight: isRight(firstWord),
    isLaterRight: isRight(later),
    isCalledMisfire: isHostile(label) && messages.some(({ verdict }) => verdict === "misfire"),
    isCritical: messages.some(({ severity }) => severity === "critical"),
    isPaged: messages.some(({ severity }) => PAGES.has(severity)),
    beginsAsInfo: first?.severity === "info",
    alerts: new Set(messages.map(({ incident }) => incident)).size,
    messages: messages.length,
  };
}

/** Returns the newest verdict; of several alerts, that of the first one that is sure. */
function wordOf(messages: readonly Message[]): string {
  const newest = new Map<string, string>();
  for (const { incident, verdict } of messages)
    if (verdict !== "" || !newest.has(incident)) newest.set(incident, verdict || "unclear");
  return [...newest.values()].find((word) => word !== "unclear") ?? "unclear";
}

function scoreZone(label: ZoneLabel, outside: readonly Message[]): ScoredZone {
  const alerts = Map.groupBy(outside, ({ incident }) => incident);
  const paging = [...alerts.values()].filter((all) => all.some((one) => PAGES.has(one.severity)));
  return {
    label,
    days: (Date.parse(label.to) - Date.parse(label.from)) / DAY_MS,
    falseAlerts: alerts.size,
    falsePages: paging.length,
  };
}

const CLASSES = ["hostile", "misfire", "broken-client", "crawler"] as const;
const classOf = (word: string) => (word === "attack" || word === "scanner" ? "hostile" : word);

/** Returns the mean of the four classes' F1 over told cases. An accepted other class counts as right for its own class. */
export function macroF1(cases: readonly ScoredCase[], look: "first" | "later"): number | null {
  const pairs = cases.flatMap((one) => {
    const said = one[look];
    if (said === null) return [];
    const isRight = look === "first" ? one.isFirstRight : one.isLaterRight;
    const word = classOf(said);
    return [{ said: word, truth: isRight && word !== "unclear" ? word : classOf(one.label.truth) }];
  });
  const scores = CLASSES.flatMap((name) => {
    const right = pairs.filter(({ said, truth }) => said === name && truth === name).length;
    const wrong = pairs.filter(
      ({ said, truth }) => said !== truth && (said === name || truth === name),
    ).length;
    return right + wrong === 0 ? [] : [(2 * right) / (2 * right + wrong)];
  });
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}
