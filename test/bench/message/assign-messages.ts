import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CaseLabel } from "./labels.ts";
import type { Message } from "./read-messages.ts";

/** Reasons that say nothing new about a cause: they never tell of a second one. */
const NO_NEWS = new Set(["resolved", "settled", "verdict", "turned", "advice", "repeat"]);
const GRACE_MS = 30 * MINUTE_MS;

export const isNews = ({ reason }: Message) => !NO_NEWS.has(reason);

/** What the messages are about: those of each case, and those of no case. */
export interface Assigned {
  readonly byCase: ReadonlyMap<string, readonly Message[]>;
  readonly outside: readonly Message[];
}

/**
 * Assigns the messages of one zone. The first message of an alert goes to the case that it names and that runs, or ended less than
 * half an hour ago; later messages follow it. News goes to a case that began after the alert if only that case runs, if the
 * news names senders of that case, or if it is of a second wave and the case is one.
 */
export function assignMessages(messages: readonly Message[], cases: readonly CaseLabel[]): Assigned {
  const byCase = new Map<string, Message[]>(cases.map((one) => [one.case, []]));
  const outside: Message[] = [];
  const owners = new Map<string, CaseLabel>();
  for (const message of messages.toSorted((a, b) => a.at - b.at)) {
    const before = owners.get(message.incident);
    const owner = isNews(message) ? (findCase(message, cases, before) ?? before) : before;
    if (owner === undefined) {
      outside.push(message);
      continue;
    }
    owners.set(message.incident, owner);
    const newcomer = isNews(message) ? findNewcomer(message, cases, owner) : undefined;
    byCase.get((newcomer ?? owner).case)?.push(message);
  }
  return { byCase, outside };
}

function findCase(
  message: Message,
  cases: readonly CaseLabel[],
  before: CaseLabel | undefined,
): CaseLabel | undefined {
  const found = cases
    .map((one) => ({ one, state: stateAt(one, message.at), points: pointsOf(message, one) }))
    .filter(({ state, points }) => state !== null && points > 0)
    // An alert stays with its case while that one runs; otherwise the case that runs is more likely than the one that ended.
    .sort(
      (a, b) =>
        Number(b.state === "runs") - Number(a.state === "runs") ||
        b.points - a.points ||
        Number(b.one === before) - Number(a.one === before),
    );
  const stays = before !== undefined && stateAt(before, message.at) === "runs" && message.reason !== "first";
  return stays ? before : found[0]?.one;
}

/** Returns the other case that runs and whose senders join the alert with this message, or whose wave it is. */
function findNewcomer(
  { at, attackers, reason }: Message,
  cases: readonly CaseLabel[],
  owner: CaseLabel,
): CaseLabel | undefined {
  const isSender = (key: string, one: CaseLabel) => one.addresses.includes(key) || one.ja4s.includes(key);
  return cases.find(
    (one) =>
      one !== owner &&
      one.from > owner.from &&
      stateAt(one, at) === "runs" &&
      (attackers.some(({ key }) => isSender(key, one) && !isSender(key, owner)) ||
        (reason === "again" && one.wave === owner.case)),
  );
}

/** Messages are cut to the minute, and a minute may be judged a little before its end. */
function stateAt(one: CaseLabel, at: number): "runs" | "ended" | null {
  const [from, to] = [Date.parse(one.from), Date.parse(one.to)];
  if (at < Math.floor(from / MINUTE_MS) * MINUTE_MS) return null;
  if (at <= to + MINUTE_MS) return "runs";
  return at <= to + GRACE_MS ? "ended" : null;
}

/** Returns how much of what the message names is the case's. Its attackers say more than its rules. */
function pointsOf({ attackers, rules }: Message, one: CaseLabel): number {
  const named = attackers.filter(({ key }) => isNamed(key, one)).length;
  const own = rules.filter((rule) => rule in one.rules);
  const hours = Math.max((Date.parse(one.to) - Date.parse(one.from)) / HOUR_MS, 1 / 12);
  const rate = own.reduce((sum, rule) => sum + (one.rules[rule] ?? 0) / hours, 0);
  if (attackers.length > 0) return named === 0 ? 0 : 1 + named / attackers.length;
  return own.length === 0 ? 0 : Math.min(own.length / rules.length, 1) + Math.min(rate / 1e6, 0.5);
}

function isNamed(key: string, { addresses, asns, agents, ja4s, paths }: CaseLabel): boolean {
  if (addresses.includes(key) || asns.includes(key) || ja4s.includes(key) || agents.includes(key))
    return true;
  // A path may stand for several, with a part of it replaced; an address for its network.
  const path = key.replace(/^https?:\/\/[^/]+/, "").replace(/\?.*$/, "");
  if (key.startsWith("/") || key.startsWith("http"))
    return paths.includes(path) || paths.some((one) => isTemplate(path, one));
  const network = key.replace(/(?:\.\*|\.0\/24|::?\/\d+|\/\d+)$/, "");
  return network.length > 5 && addresses.some((one) => one.startsWith(network));
}

function isTemplate(template: string, path: string): boolean {
  const parts = template.split("/");
  const own = path.split("/");
  return (
    parts.length === own.length &&
    /[{*:]/.test(template) &&
    parts.every((part, index) => part === own[index] || /[{*:]/.test(part))
  );
}
