import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type NotifyReason, VERDICT_LOOKS } from "#model/kinds.ts";
import type { LaterMessage } from "#model/later-message.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { resolveByHand } from "#stages/alerting/act-on-alert.ts";
import type { AlertRecord } from "#stages/alerting/alert-record.ts";
import { decide, type Situation } from "#stages/alerting/decide.ts";
import { DEFAULT_TIMING } from "#stages/alerting/routing/routing.ts";
import { changesAction } from "#stages/detection/verdict/changes-action.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
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
  const nowMs = NOW + minutes * MINUTE_MS;
  const context = { nowMs, routing: { channels: CHANNELS }, laterMessageOf, changesAction };
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

const SCANNER = verdictOf({ said: "scanner", likeliest: "scanner" });
const ATTACK = verdictOf();
const LIKELY = verdictOf({ odds: 0.8 });
const UNCLEAR = verdictOf({ said: "unclear", odds: 0.4 });
const MISFIRE = verdictOf({ said: "misfire", likeliest: "misfire" });
const LASTING: StoredVerdict = { ...MISFIRE, isLasting: true };
const at = (look: StoredVerdict["look"], verdict: StoredVerdict) => ({ ...verdict, look });
const said = (...verdicts: StoredVerdict[]) => ({ looks: verdicts });
/** Alerts whose channels were sent an unclear verdict with the first message. */
const SAID = after([1, said(UNCLEAR)]);
const REMINDED = after([1, said(UNCLEAR)], [242, said(UNCLEAR)]);
const AT_NIGHT = after(
  [1, said(UNCLEAR)],
  [31, { ...said(UNCLEAR, at("half-hour", ATTACK)), held: ["pager"] }],
);

type Sent = readonly [reason: NotifyReason, notified: string, updated: string, waiting: string];
type Row = readonly [number: number, what: string, minutes: number, AlertRecord | null, Over, Sent | null];

const TABLE: readonly Row[] = [
  [1, "a spike opened within group wait", 0.15, null, {}, null],
  [3, "group wait is over", 0.17, null, {}, ["first", ALL, "", ""]],
  [3, "the spike closed before its alert was raised", 0.1, null, closedAt(0), ["first", ALL, "", ""]],
  [3, "a channel is in its quiet hours", 1, null, { held: ["chat"] }, ["first", "board pager", "", ""]],
  [3, "a silence mutes the new alert, without a group wait", 0, null, SILENCED, ["first", "", "", ""]],
  [3, "the rule is part of an incident", 1, null, OF_INCIDENT, ["first", "", "", ""]],
  [3, "a spike opened 31 minutes after the resolve", 52, RESOLVED, later(51), ["first", ALL, "", ""]],
  [4, "the resolved alert has no later spike", 25, RESOLVED, closedAt(20), null],
  [4, "a person resolved the incident, whose attackers go on", 25, BY_HAND, joined(3), null],
  [
    5,
    "an attacker joined after a person resolved the incident",
    26,
    BY_HAND,
    joined(25),
    ["worse", ALL, "", ""],
  ],
  [4, "an attacker joined before the incident closed", 26, BY_HAND, joined(25, closedAt(26)), null],
  [5, "a spike opened 30 minutes after the resolve", 50, RESOLVED, later(50), ["worse", ALL, "", ""]],
  [
    5,
    "the alert is reopened under a silence",
    50,
    RESOLVED,
    { ...later(50), ...SILENCED },
    ["worse", "", "", ""],
  ],
  [
    5,
    "the alert is reopened within group interval of its only notification",
    4,
    after([1], [2, closedAt(2)]),
    later(3),
    ["worse", "", "board", "chat pager"],
  ],
  [
    6,
    "a reopened alert's spike closed 29 minutes ago",
    69,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    null,
  ],
  [
    7,
    "a reopened alert's spike closed 30 minutes ago",
    70,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    ["resolved", ALL, "", ""],
  ],
  [7, "the spike closed", 20, FIRST, closedAt(20), ["resolved", ALL, "", ""]],
  [
    7,
    "the spike closed under a silence",
    20,
    FIRST,
    { ...closedAt(20), ...SILENCED },
    ["resolved", ALL, "", ""],
  ],
  [7, "the spike of a muted alert closed", 20, after([0, SILENCED]), closedAt(20), ["resolved", "", "", ""]],
  [8, "the severity rose within group interval", 2, FIRST, ERROR, ["worse", "pager", "board", "chat"]],
  [8, "the severity rose after group interval", 6, FIRST, ERROR, ["worse", ALL, "", ""]],
  [8, "a warning became critical within group interval", 2, FIRST, CRITICAL, ["worse", ALL, "", ""]],
  [
    8,
    "an error became critical within group interval",
    3,
    after([1, ERROR]),
    CRITICAL,
    ["worse", "pager", "board", "chat"],
  ],
  [
    8,
    "the severity of a calm spike rose",
    60,
    FIRST,
    { occurrence: { severity: "error", isCalm: true } },
    ["worse", "", "board", "chat pager"],
  ],
  [8, "the severity rose under a silence", 6, FIRST, { ...ERROR, ...SILENCED }, ["worse", "", "", ""]],
  [8, "the severity of an acknowledged alert rose", 6, ACKNOWLEDGED, ERROR, ["worse", ALL, "", ""]],
  [9, "repeat interval is over under a silence", 300, FIRST, SILENCED, null],
  [9, "a recommendation came under a silence", 9, FIRST, { hasAdvice: true, ...SILENCED }, null],
  [
    10,
    "an attacker joined, 5 minutes after the first message",
    6,
    named(1),
    joined(3),
    ["join", ALL, "", ""],
  ],
  [10, "an attacker joined, less than 5 minutes after the first message", 5.9, named(1), joined(3), null],
  [10, "the newest attacker is named", 60, named(1, 6), joined(6), null],
  [10, "5 minutes are over after the second message", 11, named(1, 6), joined(7), ["join", ALL, "", ""]],
  [10, "10 minutes are not over after the third message", 20, named(1, 6, 11), joined(12), null],
  [10, "10 minutes are over after the third message", 21, named(1, 6, 11), joined(12), ["join", ALL, "", ""]],
  [10, "20 minutes are not over after the fourth message", 40, named(1, 6, 11, 21), joined(22), null],
  [
    10,
    "20 minutes are over after the fourth message",
    41,
    named(1, 6, 11, 21),
    joined(22),
    ["join", ALL, "", ""],
  ],
  [10, "40 minutes are not over after the fifth message", 80, named(1, 6, 11, 21, 41), joined(42), null],
  [
    10,
    "40 minutes are over after the fifth message",
    81,
    named(1, 6, 11, 21, 41),
    joined(42),
    ["join", ALL, "", ""],
  ],
  [10, "60 minutes are not over after a later message", 140, named(1, 6, 11, 21, 41, 81), joined(82), null],
  [
    10,
    "60 minutes are over after a later message",
    141,
    named(1, 6, 11, 21, 41, 81),
    joined(82),
    ["join", ALL, "", ""],
  ],
  [9, "an attacker joined under a silence", 9, named(1), joined(3, SILENCED), null],
  [10, "a silence is over under which an attacker joined", 40, named(1), joined(3), ["join", ALL, "", ""]],
  [
    10,
    "the silence of a new incident is over",
    9,
    after([0, joined(0, SILENCED)]),
    joined(0),
    ["join", ALL, "", ""],
  ],
  [
    10,
    "an attacker joined while the incident is calm",
    9,
    named(1),
    joined(3, { occurrence: { isCalm: true } }),
    ["join", "", "board", "chat pager"],
  ],
  [10, "an attacker joined an acknowledged incident", 9, named(1), joined(3), ["join", ALL, "", ""]],
  [8, "an attacker joined, and the severity rose", 9, named(1), joined(3, ERROR), ["worse", ALL, "", ""]],
  [
    11,
    "group interval is over for the channels that waited",
    6,
    WAITING,
    ERROR,
    ["worse", "chat board", "", ""],
  ],
  [11, "group interval is not over for the channels that waited", 5, WAITING, ERROR, null],
  [
    11,
    "the spike is calm when the channels that waited are due",
    6,
    WAITING,
    { occurrence: { severity: "error", isCalm: true } },
    null,
  ],
  [
    11,
    "a silence under which the severity rose is over",
    9,
    after([1], [6, { ...ERROR, ...SILENCED }]),
    ERROR,
    ["worse", ALL, "", ""],
  ],
  [12, "repeat interval is over", 241, FIRST, {}, ["repeat", ALL, "", ""]],
  [12, "repeat interval is not over", 240, FIRST, {}, null],
  [12, "repeat interval is over while the spike is calm", 241, FIRST, { occurrence: { isCalm: true } }, null],
  [12, "repeat interval is over for an acknowledged alert", 241, ACKNOWLEDGED, {}, null],
  [12, "the silence of a new alert is over", 9, after([0, SILENCED]), {}, ["repeat", ALL, "", ""]],
  [12, "a channel's quiet hours are over", 9, after([1, { held: ["chat"] }]), {}, ["repeat", "chat", "", ""]],
  [14, "a recommendation came", 2, FIRST, { hasAdvice: true }, ["advice", ALL, "", ""]],
  [14, "a recommendation was sent before", 3, after([1, { hasAdvice: true }]), { hasAdvice: true }, null],
  [2, "the first verdict is awaited", 1, null, { isAwaited: true }, null],
  [
    3,
    "a verdict is awaited under a silence",
    1,
    null,
    { isAwaited: true, ...SILENCED },
    ["first", "", "", ""],
  ],
  [
    13,
    "the first verdict came after the first message",
    2,
    FIRST,
    said(SCANNER),
    ["verdict", "chat", "board pager", ""],
  ],
  [13, "an attack is almost certain in the first verdict", 2, FIRST, said(ATTACK), ["verdict", ALL, "", ""]],
  [
    13,
    "an attack is likely in the first verdict",
    2,
    FIRST,
    said(LIKELY),
    ["verdict", "chat", "board pager", ""],
  ],
  [13, "the first verdict is unclear", 2, FIRST, said(UNCLEAR), ["verdict", "", "board pager", ""]],
  [
    13,
    "the verdict became an attack after group interval",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["verdict", ALL, "", ""],
  ],
  [
    13,
    "the verdict became an attack within group interval of a reminder",
    245,
    REMINDED,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["verdict", "pager", "", ""],
  ],
  [
    12,
    "a reminder brings the verdict",
    361,
    SAID,
    said(UNCLEAR, at("six-hours", LASTING)),
    ["repeat", ALL, "", ""],
  ],
  [
    13,
    "the verdict became a misfire that lasts after a reminder",
    361,
    REMINDED,
    said(UNCLEAR, at("six-hours", LASTING)),
    ["verdict", ALL, "", ""],
  ],
  [
    13,
    "the verdict became a misfire that may not last",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", MISFIRE)),
    ["verdict", "", "board pager", ""],
  ],
  [
    13,
    "the verdict became a scanner",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", SCANNER)),
    ["verdict", "", "board pager", ""],
  ],
  [15, "the verdict is the same at a later look", 31, SAID, said(UNCLEAR, at("half-hour", UNCLEAR)), null],
  [
    9,
    "the verdict became an attack under a silence",
    31,
    SAID,
    { ...said(UNCLEAR, at("half-hour", ATTACK)), ...SILENCED },
    null,
  ],
  [4, "a verdict came after the resolve", 31, RESOLVED, { ...closedAt(20), ...said(ATTACK) }, null],
  [
    13,
    "a verdict came in a channel's quiet hours",
    31,
    SAID,
    { ...said(UNCLEAR, at("half-hour", ATTACK)), held: ["pager"] },
    ["verdict", "chat board", "", ""],
  ],
  [
    13,
    "the quiet hours are over in which a verdict came",
    60,
    AT_NIGHT,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["verdict", "pager", "", ""],
  ],
  [
    11,
    "channels waited for a rise, which brings the verdict",
    6,
    WAITING,
    { ...ERROR, ...said(ATTACK) },
    ["worse", "chat board", "", ""],
  ],
  [
    13,
    "the verdict is of a later spike",
    31,
    SAID,
    { ...said(UNCLEAR), ...later(30) },
    ["verdict", "", "board pager", ""],
  ],
  [15, "nothing has changed", 2, FIRST, {}, null],
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

test("a channel gets at most four verdicts of one spike, however often they change", () => {
  const words = ["unclear", "attack", "scanner", "attack"] as const;
  const looks = VERDICT_LOOKS.map((look, index) => at(look, verdictOf({ said: words[index] ?? "attack" })));
  let alert = FIRST;
  const sent: string[] = [];
  for (const [index, minutes] of [2, 31, 361, 1_441].entries())
    for (const further of [0, 1, 2, 10]) {
      const decision = decideAt(minutes + further, alert, said(...looks.slice(0, index + 1)));
      if (decision?.reason === "verdict")
        sent.push([...decision.notified, ...decision.updated].sort().join(" "));
      alert = decision?.alert ?? alert;
    }
  expect(sent.length).toBeLessThanOrEqual(4);
  expect(sent.slice(0, 2)).toEqual(["board pager", "board chat pager"]);
});
