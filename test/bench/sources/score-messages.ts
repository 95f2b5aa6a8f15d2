import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import type { SourceKind } from "#model/kinds.ts";
import { FIELD_OF, FIELDS } from "./add-keys.ts";
import { DAYS, type DrawnAttack, type DrawnEvent, type DrawnKind, type DrawnZone } from "./zone.ts";

/** A message that starts this long after an attack still belongs to it. */
const LATE_MINUTES = 5;
/** A message is compared with the events of these many minutes before it. */
const WINDOWS = [15, 60] as const;
/** A key names an attack of which it holds this share, if the same share of the key's events is the attack's. */
const NAMING_SHARE = 0.5;
/** An alert belongs to the attack that made most of its events, and at least this share. */
const OWNING_SHARE = 0.3;

export const GROUPS = {
  single: ["a", "b", "c", "d", "f"],
  botnets: ["b", "B", "D"],
  overlapping: ["x", "y", "s"],
  rotating: ["r", "R"],
} as const satisfies Record<string, readonly DrawnKind[]>;

/** What became of one attack. */
interface Outcome {
  readonly kind: DrawnKind;
  /** Minutes from its start to the first message that names it. */
  readonly namedAfter: number | null;
  readonly isNotified: boolean;
  readonly isPaged: boolean;
  readonly isNamedByPage: boolean;
  readonly alerts: number;
  readonly messages: number;
  readonly addresses: number;
  readonly addressesNamed: number;
}

interface Alert {
  readonly subject: ReplayedMessage["subject"];
  readonly messages: readonly ReplayedMessage[];
}

/** What became of the attacks of some kinds; every number is null if there were none. */
export interface GroupScore {
  readonly attacks: number;
  readonly namedWithin10: number | null;
  readonly namedWithin30: number | null;
  readonly alertsPerAttack: number | null;
  readonly messagesPerAttack: number | null;
  readonly addressesNamed: number | null;
  readonly notified: number | null;
}

/** Scores messages. An alert is false if it starts in no attack and not in the five minutes after one. */
export function createMessageScore() {
  const outcomes: Outcome[] = [];
  const causes = new Map<string, number>();
  const count = { zones: 0, pages: 0, truePages: 0, falseSources: 0, falseNotifications: 0 };

  function add({ attacks, events, nuisances }: DrawnZone, all: readonly ReplayedMessage[]): void {
    const messages = all.filter(({ reason }) => reason !== "resolved");
    const index = createIndex(events);
    const shares = new Map(messages.map((message) => [message, index(message)]));
    const alerts = [...Map.groupBy(messages, ({ incident }) => incident).values()].map(toAlert);
    const [ownedAlerts, ownedMessages] = [new Map<number, number>(), new Map<number, number>()];
    for (const alert of alerts) {
      const own = ownerOf(alert.messages.flatMap((message) => shares.get(message) ?? []));
      increase(ownedAlerts, own);
      for (const message of alert.messages)
        increase(ownedMessages, ownerOf(shares.get(message) ?? []) ?? own);
      const page = alert.messages.find(isPage);
      count.pages += page === undefined ? 0 : 1;
      count.truePages += page !== undefined && isInAny(attacks, page) ? 1 : 0;
      const [first] = alert.messages;
      if (first === undefined || isInAny(attacks, first)) continue;
      count.falseSources += alert.subject === "incident" ? 1 : 0;
      count.falseNotifications += alert.messages.filter((message) => !isInAny(attacks, message)).length;
      const during = nuisances.find(({ from, to }) => first.at >= from && first.at <= to + 60);
      const cause = `${alert.subject}: ${during?.name ?? "none"}`;
      causes.set(cause, (causes.get(cause) ?? 0) + 1);
    }
    const named = new Set(messages.flatMap(({ attackers }) => attackers.map(toName)));
    const starts = alerts.flatMap((alert) => alert.messages.slice(0, 1));
    const pages = alerts.flatMap((alert) => alert.messages.filter(isPage).slice(0, 1));
    outcomes.push(
      ...attacks.map((attack, place): Outcome => {
        const naming = messages.filter(
          (message) =>
            message.at > attack.from && shares.get(message)?.some(({ names }) => names.has(place)) === true,
        );
        const first = naming.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
        const own = addressesOf(attack, place, events);
        return {
          kind: attack.kind,
          namedAfter: naming.length > 0 ? first - attack.from : null,
          isNotified: starts.some((message) => isIn(attack, message)),
          isPaged: pages.some((message) => isIn(attack, message)),
          isNamedByPage: naming.some((message) => isPage(message) && isIn(attack, message)),
          alerts: ownedAlerts.get(place) ?? 0,
          messages: ownedMessages.get(place) ?? 0,
          addresses: own.length,
          addressesNamed: own.filter((key) => named.has(toName({ kind: "rules_per_ip", key }))).length,
        };
      }),
    );
    count.zones += 1;
  }

  function read() {
    const zoneDays = count.zones * (DAYS - 1);
    const scored = outcomes.filter(({ kind }) => kind !== "F");
    const precision = count.truePages / Math.max(count.pages, 1);
    const f1 = (recall: number) => (2 * recall * precision) / Math.max(recall + precision, 1e-9);
    return {
      of: (kinds: readonly DrawnKind[]): GroupScore =>
        toGroupScore(outcomes.filter(({ kind }) => kinds.includes(kind))),
      zones: count.zones,
      attacks: scored.length,
      falseSources: count.falseSources / zoneDays,
      falsePages: (count.pages - count.truePages) / zoneDays,
      falseNotifications: count.falseNotifications / zoneDays,
      precision,
      f1: f1(shareOf(scored, ({ isPaged }) => isPaged)),
      f1WithJoins: f1(shareOf(scored, ({ isPaged, isNamedByPage }) => isPaged || isNamedByPage)),
      causes: Object.fromEntries([...causes].toSorted(([, a], [, b]) => b - a)),
    };
  }

  return { add, read };
}

export type MessageScore = ReturnType<ReturnType<typeof createMessageScore>["read"]>;

/** How much of a message's events in one window each attack made, and which attacks the message names. */
interface WindowShare {
  readonly window: number;
  readonly total: number;
  readonly byAttack: ReadonlyMap<number, number>;
  readonly names: ReadonlySet<number>;
}

/** Returns a function that compares a message with the events before it. */
function createIndex(events: readonly DrawnEvent[]): (message: ReplayedMessage) => WindowShare[] {
  const before = (minute: number): number => {
    let [low, high] = [0, events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((events[middle] as DrawnEvent).minute < minute) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return (message) =>
    WINDOWS.map((window) => {
      const seen = events.slice(before(message.at - window), before(message.at));
      return { window, ...compare(message, seen) };
    });
}

function compare({ attackers, rules }: ReplayedMessage, events: readonly DrawnEvent[]) {
  const wanted = new Map<SourceKind, Set<string>>();
  for (const { kind, key } of attackers) wanted.set(kind, (wanted.get(kind) ?? new Set()).add(key));
  const asked = FIELDS.filter(([kind]) => wanted.has(kind));
  const byKey = new Map<string, (number | null)[]>();
  const [ofAttack, byAttack] = [new Map<number, number>(), new Map<number, number>()];
  let total = 0;
  for (const event of events) {
    increase(ofAttack, event.attack);
    let isOwn = attackers.length === 0 && rules.includes(event.ruleId ?? "");
    for (const [kind] of asked) {
      const key = event[FIELD_OF[kind]] ?? "";
      if (wanted.get(kind)?.has(key) !== true) continue;
      isOwn = true;
      const name = toName({ kind, key });
      const owners = byKey.get(name);
      if (owners === undefined) byKey.set(name, [event.attack]);
      else owners.push(event.attack);
    }
    if (!isOwn) continue;
    total += 1;
    increase(byAttack, event.attack);
  }
  const names = new Set<number>();
  for (const owners of byKey.values())
    for (const [attack, { length }] of Map.groupBy(owners, (owner) => owner))
      if (
        attack !== null &&
        length >= NAMING_SHARE * owners.length &&
        length >= NAMING_SHARE * (ofAttack.get(attack) ?? 0)
      )
        names.add(attack);
  return { total, byAttack, names };
}

/** Returns the attack that made most of the events, in the window in which its share is largest; null for none. */
function ownerOf(shares: readonly WindowShare[]): number | null {
  let [owner, best]: [number | null, number] = [null, OWNING_SHARE];
  for (const of of Map.groupBy(shares, ({ window }) => window).values()) {
    const total = of.reduce((sum, share) => sum + share.total, 0);
    const made = new Map<number, number>();
    for (const { byAttack } of of)
      for (const [attack, n] of byAttack) made.set(attack, (made.get(attack) ?? 0) + n);
    for (const [attack, n] of made) if (n / total >= best) [owner, best] = [attack, n / total];
  }
  return owner;
}

function toAlert(messages: readonly ReplayedMessage[]): Alert {
  const sorted = messages.toSorted((a, b) => a.at - b.at);
  return { subject: sorted[0]?.subject ?? "incident", messages: sorted };
}

function toGroupScore(outcomes: readonly Outcome[]): GroupScore {
  const sum = (valueOf: (outcome: Outcome) => number) =>
    outcomes.reduce((all, outcome) => all + valueOf(outcome), 0);
  const per = (whole: number, part: number) => (whole > 0 ? part / whole : null);
  const attacks = outcomes.length;
  const within = (minutes: number) => sum(({ namedAfter }) => Number((namedAfter ?? Infinity) <= minutes));
  return {
    attacks,
    namedWithin10: per(attacks, within(10)),
    namedWithin30: per(attacks, within(30)),
    alertsPerAttack: per(
      attacks,
      sum(({ alerts }) => alerts),
    ),
    messagesPerAttack: per(
      attacks,
      sum(({ messages }) => messages),
    ),
    addressesNamed: per(
      sum(({ addresses }) => addresses),
      sum(({ addressesNamed }) => addressesNamed),
    ),
    notified: per(
      attacks,
      sum(({ isNotified }) => Number(isNotified)),
    ),
  };
}

/** A flood has more addresses than an attack's keys list. */
function addressesOf({ kind, keys }: DrawnAttack, place: number, events: readonly DrawnEvent[]): string[] {
  if (kind !== "F") return keys.filter((one) => one.kind === "rules_per_ip").map(({ key }) => key);
  return [...new Set(events.flatMap(({ attack, ip }) => (attack === place ? [ip ?? ""] : [])))];
}

function isPage({ severity }: ReplayedMessage): boolean {
  return severity === "error" || severity === "critical";
}

function isIn({ from, to }: DrawnAttack, { at }: ReplayedMessage): boolean {
  return at >= from && at <= to + LATE_MINUTES;
}

function isInAny(attacks: readonly DrawnAttack[], message: ReplayedMessage): boolean {
  return attacks.some((attack) => isIn(attack, message));
}

function toName({ kind, key }: { readonly kind: SourceKind; readonly key: string }): string {
  return `${kind}=${key}`;
}

function increase(counts: Map<number, number>, attack: number | null): void {
  if (attack !== null) counts.set(attack, (counts.get(attack) ?? 0) + 1);
}

function shareOf<T>(all: readonly T[], isCounted: (one: T) => boolean): number {
  return all.length > 0 ? all.filter(isCounted).length / all.length : 0;
}
