import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { NotifyReason } from "#model/kinds.ts";
import type { LaterMessage } from "#model/later-message.ts";
import { resolveByHand } from "#stages/alerting/act-on-alert.ts";
import type { AlertRecord } from "#stages/alerting/alert-record.ts";
import { decide, type Situation } from "#stages/alerting/decide.ts";
import { DEFAULT_TIMING } from "#stages/alerting/routing/routing.ts";
import { alertSpike, NOW } from "./support.ts";

const LATER: Readonly<Record<string, LaterMessage>> = {
  chat: "post-anew",
  board: "update-in-place",
  pager: "same-incident",
};
const CHANNELS = Object.keys(LATER);

type Over = Partial<Omit<Situation, "occurrence">> & {
  readonly occurrence?: Partial<Situation["occurrence"]>;
  /** Channels in their quiet hours. */
  readonly held?: readonly string[];
};

/** Decides `minutes` after NOW. The spike opened at NOW, unless `over` says otherwise. */
function decideAt(minutes: number, alert: AlertRecord | null, over: Over = {}) {
  const { occurrence, held = [], ...rest } = over;
  const situation: Situation = {
    alert,
    occurrence: { ...alertSpike(), isCalm: false, ...occurrence },
    route: {
      channels: CHANNELS.filter((channel) => !held.includes(channel)),
      held,
      repeatIntervalMs: new Map(),
      timing: DEFAULT_TIMING,
    },
    mute: { silencedBy: null, mutedBy: null },
    hasAdvice: false,
    ...rest,
  };
  const laterMessageOf = (channel: string) => LATER[channel] ?? "post-anew";
  const context = { nowMs: NOW + minutes * MINUTE_MS, routing: { channels: CHANNELS }, laterMessageOf };
  return decide(situation, context);
}

/** The alert after these decisions. */
function after(...steps: readonly (readonly [number, Over?])[]): AlertRecord | null {
  return steps.reduce<AlertRecord | null>((alert, [minutes, over]) => {
    const decision = decideAt(minutes, alert, over);
    if (decision === null) throw new Error(`no transition after ${minutes} minutes`);
    return decision.alert;
  }, null);
}

const closedAt = (minutes: number) => ({ occurrence: { closedAtMs: NOW + minutes * MINUTE_MS } });
const later = (minutes: number, over: object = {}) => ({
  occurrence: { id: 2, openedAtMs: NOW + minutes * MINUTE_MS, ...over },
});
const ERROR = { occurrence: { severity: "error" } } as const;
const CRITICAL = { occurrence: { severity: "critical" } } as const;
const SILENCED = { mute: { silencedBy: 7, mutedBy: null } } as const;
const OF_INCIDENT = { mute: { silencedBy: null, mutedBy: "incident" } } as const;
/** The newest attacker fired first so many minutes after NOW. */
const joined = (minutes: number, over: Over = {}): Over => ({
  ...over,
  newest: NOW / MINUTE_MS + minutes,
});
/** An incident whose messages were sent at these minutes, each of which names an attacker that had just joined. */
const named = (...minutes: readonly number[]) =>
  after(...minutes.map((one, index) => [one, joined(index === 0 ? 0 : one)] as const));
const FIRST = after([1]);
const RESOLVED = after([1], [20, closedAt(20)]);
const REOPENED = after([1], [20, closedAt(20)], [30, later(30)]);
/** The group interval was not over at the severity's rise: chat and board wait. */
const WAITING = after([1], [2, ERROR]);
/** A person has resolved an incident, whose newest attacker fired first three minutes after NOW. */
const BY_HAND =
  FIRST &&
  resolveByHand(
    FIRST,
    { by: "alice", note: null, atMs: NOW + 20 * MINUTE_MS },
    { attackers: [{ startedAt: NOW + 3 * MINUTE_MS }] as AlertMessage["attackers"] },
  ).alert;
const ACKNOWLEDGED: AlertRecord | null = FIRST && { ...FIRST, state: "acknowledged" };
const ALL = "chat board pager";

type Sent = readonly [reason: NotifyReason, notified: string, updated: string, waiting: string];
type Row = readonly [number: number, what: string, minutes: number, AlertRecord | null, Over, Sent | null];

const TABLE: readonly Row[] = [
  [1, "a spike opened within group wait", 0.15, null, {}, null],
  [2, "group wait is over", 0.17, null, {}, ["first", ALL, "", ""]],
  [2, "the spike closed before its alert was raised", 0.1, null, closedAt(0), ["first", ALL, "", ""]],
  [2, "a channel is in its quiet hours", 1, null, { held: ["chat"] }, ["first", "board pager", "", ""]],
  [2, "a silence mutes the new alert, without a group wait", 0, null, SILENCED, ["first", "", "", ""]],
  [2, "the rule is part of an incident", 1, null, OF_INCIDENT, ["first", "", "", ""]],
  [2, "a spike opened 31 minutes after the resolve", 52, RESOLVED, later(51), ["first", ALL, "", ""]],
  [3, "the resolved alert has no later spike", 25, RESOLVED, closedAt(20), null],
  [3, "a person resolved the incident, whose attackers go on", 25, BY_HAND, joined(3), null],
  [
    4,
    "an attacker joined after a person resolved the incident",
    26,
    BY_HAND,
    joined(25),
    ["worse", ALL, "", ""],
  ],
  [3, "an attacker joined before the incident closed", 26, BY_HAND, joined(25, closedAt(26)), null],
  [4, "a spike opened 30 minutes after the resolve", 50, RESOLVED, later(50), ["worse", ALL, "", ""]],
  [
    4,
    "the alert is reopened under a silence",
    50,
    RESOLVED,
    { ...later(50), ...SILENCED },
    ["worse", "", "", ""],
  ],
  [
    4,
    "the alert is reopened within group interval of its only notification",
    4,
    after([1], [2, closedAt(2)]),
    later(3),
    ["worse", "", "board", "chat pager"],
  ],
  [
    5,
    "a reopened alert's spike closed 29 minutes ago",
    69,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    null,
  ],
  [
    6,
    "a reopened alert's spike closed 30 minutes ago",
    70,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    ["resolved", ALL, "", ""],
  ],
  [6, "the spike closed", 20, FIRST, closedAt(20), ["resolved", ALL, "", ""]],
  [
    6,
    "the spike closed under a silence",
    20,
    FIRST,
    { ...closedAt(20), ...SILENCED },
    ["resolved", ALL, "", ""],
  ],
  [6, "the spike of a muted alert closed", 20, after([0, SILENCED]), closedAt(20), ["resolved", "", "", ""]],
  [7, "the severity rose within group interval", 2, FIRST, ERROR, ["worse", "pager", "board", "chat"]],
  [7, "the severity rose after group interval", 6, FIRST, ERROR, ["worse", ALL, "", ""]],
  [7, "a warning became critical within group interval", 2, FIRST, CRITICAL, ["worse", ALL, "", ""]],
  [
    7,
    "an error became critical within group interval",
    3,
    after([1, ERROR]),
    CRITICAL,
    ["worse", "pager", "board", "chat"],
  ],
  [
    7,
    "the severity of a calm spike rose",
    60,
    FIRST,
    { occurrence: { severity: "error", isCalm: true } },
    ["worse", "", "board", "chat pager"],
  ],
  [7, "the severity rose under a silence", 6, FIRST, { ...ERROR, ...SILENCED }, ["worse", "", "", ""]],
  [7, "the severity of an acknowledged alert rose", 6, ACKNOWLEDGED, ERROR, ["worse", ALL, "", ""]],
  [8, "repeat interval is over under a silence", 300, FIRST, SILENCED, null],
  [8, "a recommendation came under a silence", 9, FIRST, { hasAdvice: true, ...SILENCED }, null],
  [9, "an attacker joined, 5 minutes after the first message", 6, named(1), joined(3), ["join", ALL, "", ""]],
  [9, "an attacker joined, less than 5 minutes after the first message", 5.9, named(1), joined(3), null],
  [9, "the newest attacker is named", 60, named(1, 6), joined(6), null],
  [9, "5 minutes are over after the second message", 11, named(1, 6), joined(7), ["join", ALL, "", ""]],
  [9, "10 minutes are not over after the third message", 20, named(1, 6, 11), joined(12), null],
  [9, "10 minutes are over after the third message", 21, named(1, 6, 11), joined(12), ["join", ALL, "", ""]],
  [9, "20 minutes are not over after the fourth message", 40, named(1, 6, 11, 21), joined(22), null],
  [
    9,
    "20 minutes are over after the fourth message",
    41,
    named(1, 6, 11, 21),
    joined(22),
    ["join", ALL, "", ""],
  ],
  [9, "40 minutes are not over after the fifth message", 80, named(1, 6, 11, 21, 41), joined(42), null],
  [
    9,
    "40 minutes are over after the fifth message",
    81,
    named(1, 6, 11, 21, 41),
    joined(42),
    ["join", ALL, "", ""],
  ],
  [9, "60 minutes are not over after a later message", 140, named(1, 6, 11, 21, 41, 81), joined(82), null],
  [
    9,
    "60 minutes are over after a later message",
    141,
    named(1, 6, 11, 21, 41, 81),
    joined(82),
    ["join", ALL, "", ""],
  ],
  [8, "an attacker joined under a silence", 9, named(1), joined(3, SILENCED), null],
  [9, "a silence is over under which an attacker joined", 40, named(1), joined(3), ["join", ALL, "", ""]],
  [
    9,
    "the silence of a new incident is over",
    9,
    after([0, joined(0, SILENCED)]),
    joined(0),
    ["join", ALL, "", ""],
  ],
  [
    9,
    "an attacker joined while the incident is calm",
    9,
    named(1),
    joined(3, { occurrence: { isCalm: true } }),
    ["join", "", "board", "chat pager"],
  ],
  [9, "an attacker joined an acknowledged incident", 9, named(1), joined(3), ["join", ALL, "", ""]],
  [7, "an attacker joined, and the severity rose", 9, named(1), joined(3, ERROR), ["worse", ALL, "", ""]],
  [
    10,
    "group interval is over for the channels that waited",
    6,
    WAITING,
    ERROR,
    ["worse", "chat board", "", ""],
  ],
  [10, "group interval is not over for the channels that waited", 5, WAITING, ERROR, null],
  [
    10,
    "the spike is calm when the channels that waited are due",
    6,
    WAITING,
    { occurrence: { severity: "error", isCalm: true } },
    null,
  ],
  [
    10,
    "a silence under which the severity rose is over",
    9,
    after([1], [6, { ...ERROR, ...SILENCED }]),
    ERROR,
    ["worse", ALL, "", ""],
  ],
  [11, "repeat interval is over", 241, FIRST, {}, ["repeat", ALL, "", ""]],
  [11, "repeat interval is not over", 240, FIRST, {}, null],
  [11, "repeat interval is over while the spike is calm", 241, FIRST, { occurrence: { isCalm: true } }, null],
  [11, "repeat interval is over for an acknowledged alert", 241, ACKNOWLEDGED, {}, null],
  [11, "the silence of a new alert is over", 9, after([0, SILENCED]), {}, ["repeat", ALL, "", ""]],
  [11, "a channel's quiet hours are over", 9, after([1, { held: ["chat"] }]), {}, ["repeat", "chat", "", ""]],
  [12, "a recommendation came", 2, FIRST, { hasAdvice: true }, ["advice", ALL, "", ""]],
  [12, "a recommendation was sent before", 3, after([1, { hasAdvice: true }]), { hasAdvice: true }, null],
  [13, "nothing has changed", 2, FIRST, {}, null],
];

test.each(TABLE)("case %i: %s", (_number, _what, minutes, alert, over, sent) => {
  const decision = decideAt(minutes, alert, over);
  const listed = decision && [
    decision.reason,
    ...[decision.notified, decision.updated, decision.waiting].map((names) => names.join(" ")),
  ];
  expect(listed).toEqual(sent);
});

test("the history stores the recipients of a decision", () => {
  const decision = decideAt(2, FIRST, { ...ERROR, held: ["chat"] });
  expect(decision?.alert.transitions.at(-1)).toMatchObject({
    reason: "worse",
    severity: "error",
    channels: ["pager", "board"],
    quiet: ["board"],
    waiting: ["board"],
    held: ["chat"],
  });
});
