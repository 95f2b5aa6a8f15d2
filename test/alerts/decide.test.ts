import { expect, test } from "vitest";
import { assign, comment, resolveByHand } from "#alerts/rules/act-on-alert.ts";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { decide, lacksVerdict, type Situation } from "#alerts/rules/decide.ts";
import { DEFAULT_TIMING } from "#alerts/rules/routing/routing.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage, LaterMessage } from "#model/alert-message.ts";
import { type NotifyReason, VERDICT_TIMES } from "#model/kinds.ts";
import type { StoredVerdict } from "#model/verdict.ts";
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
  const context = { nowMs, routing: { channels: CHANNELS }, laterMessageOf };
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
const settledAt = (minutes: number) => ({
  occurrence: { closedAtMs: NOW + minutes * MINUTE_MS, isSettled: true },
});
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
const SETTLED = after([1], [200, settledAt(200)]);
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
/** A comment and an assignment change nothing about what the next transition is. */
const discussed = (alert: AlertRecord | null): AlertRecord | null => {
  if (alert === null) return null;
  const act = { by: "bob", note: "it is ours", atMs: NOW + 21 * MINUTE_MS };
  const commented = { ...alert, transition: alert.transition + 1, transitions: comment(alert, act) };
  const transitions = assign(commented, act, "bob");
  return { ...commented, transition: transitions.length, transitions };
};
const acknowledged = (alert: AlertRecord | null): AlertRecord | null =>
  alert && { ...alert, state: "acknowledged" };
const ACKNOWLEDGED = acknowledged(FIRST);
const ALL = "chat board pager";

const SCANNER = verdictOf({ said: "scanner", likeliest: "scanner" });
const ATTACK = verdictOf();
const LIKELY = verdictOf({ odds: 0.8 });
const UNCLEAR = verdictOf({ said: "unclear", odds: 0.4 });
const MISFIRE = verdictOf({ said: "misfire", likeliest: "misfire" });
const LATE = verdictOf({ judgedAt: ATTACK.judgedAt + 1_000 });
const LASTING: StoredVerdict = { ...MISFIRE, isLasting: true };
const at = (look: StoredVerdict["look"], verdict: StoredVerdict) => ({ ...verdict, look });
const said = (...verdicts: StoredVerdict[]) => ({ ownVerdicts: verdicts });
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
    6,
    "an attacker joined after a person resolved the incident",
    26,
    BY_HAND,
    joined(25),
    ["again", ALL, "", ""],
  ],
  [4, "an attacker joined before the incident closed", 26, BY_HAND, joined(25, closedAt(26)), null],
  [5, "the message waits for another rule", 50, RESOLVED, { waitsForRule: true, ...later(50) }, null],
  [6, "a spike opened 30 minutes after the resolve", 50, RESOLVED, later(50), ["again", ALL, "", ""]],
  [
    6,
    "the alert is reopened under a silence",
    50,
    RESOLVED,
    { ...later(50), ...SILENCED },
    ["again", "", "", ""],
  ],
  [
    6,
    "the alert is reopened within group interval of its only notification",
    4,
    after([1], [2, closedAt(2)]),
    later(3),
    ["again", "", "board", "chat pager"],
  ],
  [
    7,
    "a reopened alert's spike closed 29 minutes ago",
    69,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    null,
  ],
  [
    9,
    "a reopened alert's spike closed 30 minutes ago",
    70,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS }),
    ["resolved", ALL, "", ""],
  ],
  [9, "the spike closed", 20, FIRST, closedAt(20), ["resolved", ALL, "", ""]],
  [
    9,
    "the spike closed under a silence",
    20,
    FIRST,
    { ...closedAt(20), ...SILENCED },
    ["resolved", ALL, "", ""],
  ],
  [9, "the spike of a muted alert closed", 20, after([0, SILENCED]), closedAt(20), ["resolved", "", "", ""]],
  [12, "the severity rose within group interval", 2, FIRST, ERROR, ["worse", "pager", "board", "chat"]],
  [12, "the severity rose after group interval", 6, FIRST, ERROR, ["worse", ALL, "", ""]],
  [12, "a warning became critical within group interval", 2, FIRST, CRITICAL, ["worse", ALL, "", ""]],
  [
    12,
    "an error became critical within group interval",
    3,
    after([1, ERROR]),
    CRITICAL,
    ["worse", "pager", "board", "chat"],
  ],
  [
    12,
    "the severity of a calm spike rose",
    60,
    FIRST,
    { occurrence: { severity: "error", isCalm: true } },
    ["worse", "", "board", "chat pager"],
  ],
  [12, "the severity rose under a silence", 6, FIRST, { ...ERROR, ...SILENCED }, ["worse", "", "", ""]],
  [12, "the severity of an acknowledged alert rose", 6, ACKNOWLEDGED, ERROR, ["worse", ALL, "", ""]],
  [13, "repeat interval is over under a silence", 300, FIRST, SILENCED, null],
  [13, "a recommendation came under a silence", 9, FIRST, { hasAdvice: true, ...SILENCED }, null],
  [
    14,
    "an attacker joined, 5 minutes after the first message",
    6,
    named(1),
    joined(3),
    ["join", ALL, "", ""],
  ],
  [14, "an attacker joined, less than 5 minutes after the first message", 5.9, named(1), joined(3), null],
  [14, "the newest attacker is named", 60, named(1, 6), joined(6), null],
  [14, "5 minutes are over after the second message", 11, named(1, 6), joined(7), ["join", ALL, "", ""]],
  [14, "10 minutes are not over after the third message", 20, named(1, 6, 11), joined(12), null],
  [14, "10 minutes are over after the third message", 21, named(1, 6, 11), joined(12), ["join", ALL, "", ""]],
  [14, "20 minutes are not over after the fourth message", 40, named(1, 6, 11, 21), joined(22), null],
  [
    14,
    "20 minutes are over after the fourth message",
    41,
    named(1, 6, 11, 21),
    joined(22),
    ["join", ALL, "", ""],
  ],
  [14, "40 minutes are not over after the fifth message", 80, named(1, 6, 11, 21, 41), joined(42), null],
  [
    14,
    "40 minutes are over after the fifth message",
    81,
    named(1, 6, 11, 21, 41),
    joined(42),
    ["join", ALL, "", ""],
  ],
  [14, "60 minutes are not over after a later message", 140, named(1, 6, 11, 21, 41, 81), joined(82), null],
  [
    14,
    "60 minutes are over after a later message",
    141,
    named(1, 6, 11, 21, 41, 81),
    joined(82),
    ["join", ALL, "", ""],
  ],
  [13, "an attacker joined under a silence", 9, named(1), joined(3, SILENCED), null],
  [14, "a silence is over under which an attacker joined", 40, named(1), joined(3), ["join", ALL, "", ""]],
  [
    14,
    "the silence of a new incident is over",
    11,
    after([0, joined(0, SILENCED)]),
    joined(0),
    ["join", ALL, "", ""],
  ],
  [
    14,
    "an attacker joined while the incident is calm",
    11,
    named(1),
    joined(3, { occurrence: { isCalm: true } }),
    ["join", "", "board", "chat pager"],
  ],
  [14, "an attacker joined an acknowledged incident", 9, named(1), joined(3), ["join", ALL, "", ""]],
  [12, "an attacker joined, and the severity rose", 9, named(1), joined(3, ERROR), ["worse", ALL, "", ""]],
  [
    15,
    "group interval is over for the channels that waited",
    6,
    WAITING,
    ERROR,
    ["worse", "chat board", "", ""],
  ],
  [15, "group interval is not over for the channels that waited", 5, WAITING, ERROR, null],
  [
    15,
    "the spike is calm when the channels that waited are due",
    6,
    WAITING,
    { occurrence: { severity: "error", isCalm: true } },
    null,
  ],
  [
    15,
    "a silence under which the severity rose is over",
    11,
    after([1], [6, { ...ERROR, ...SILENCED }]),
    ERROR,
    ["worse", ALL, "", ""],
  ],
  [16, "repeat interval is over", 241, FIRST, {}, ["repeat", ALL, "", ""]],
  [16, "repeat interval is not over", 240, FIRST, {}, null],
  [16, "repeat interval is over while the spike is calm", 241, FIRST, { occurrence: { isCalm: true } }, null],
  [16, "repeat interval is over for an acknowledged alert", 241, ACKNOWLEDGED, {}, null],
  [16, "the silence of a new alert is over", 9, after([0, SILENCED]), {}, ["repeat", ALL, "", ""]],
  [16, "a channel's quiet hours are over", 9, after([1, { held: ["chat"] }]), {}, ["repeat", "chat", "", ""]],
  [18, "a recommendation came", 2, FIRST, { hasAdvice: true }, ["advice", ALL, "", ""]],
  [18, "a recommendation was sent before", 3, after([1, { hasAdvice: true }]), { hasAdvice: true }, null],
  [2, "the message waits for another rule", 1, null, { waitsForRule: true }, null],
  [10, "a rise, and the message waits for another rule", 6, FIRST, { waitsForRule: true, ...ERROR }, null],
  [
    9,
    "the spike closed while the message waited for another rule",
    200,
    FIRST,
    { waitsForRule: true, ...closedAt(20) },
    ["resolved", ALL, "", ""],
  ],
  [
    3,
    "the message waits for another rule under a silence",
    1,
    null,
    { waitsForRule: true, ...SILENCED },
    ["first", "", "", ""],
  ],
  [
    17,
    "the first verdict came after the first message",
    2,
    FIRST,
    said(SCANNER),
    ["turned", "chat", "board pager", ""],
  ],
  [17, "an attack is almost certain in the first verdict", 2, FIRST, said(ATTACK), ["turned", ALL, "", ""]],
  [
    17,
    "an attack is likely in the first verdict",
    2,
    FIRST,
    said(LIKELY),
    ["turned", "chat", "board pager", ""],
  ],
  [19, "the first verdict is unclear", 2, FIRST, said(UNCLEAR), null],
  [
    17,
    "the verdict became an attack after group interval",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["turned", ALL, "", ""],
  ],
  [
    17,
    "the verdict became an attack within group interval of a reminder",
    245,
    REMINDED,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["turned", "pager", "", ""],
  ],
  [
    16,
    "a reminder brings the verdict",
    361,
    SAID,
    said(UNCLEAR, at("six-hours", LASTING)),
    ["repeat", ALL, "", ""],
  ],
  [
    17,
    "the verdict became a misfire that lasts after a reminder",
    361,
    REMINDED,
    said(UNCLEAR, at("six-hours", LASTING)),
    ["turned", "chat", "board pager", ""],
  ],
  [
    17,
    "the verdict became a misfire that may not last",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", MISFIRE)),
    ["turned", "chat", "board pager", ""],
  ],
  [
    17,
    "the verdict became a scanner",
    31,
    SAID,
    said(UNCLEAR, at("half-hour", SCANNER)),
    ["turned", "chat", "board pager", ""],
  ],
  [19, "a later verdict is the same", 31, SAID, said(UNCLEAR, at("half-hour", UNCLEAR)), null],
  [
    13,
    "the verdict became an attack under a silence",
    31,
    SAID,
    { ...said(UNCLEAR, at("half-hour", ATTACK)), ...SILENCED },
    null,
  ],
  [4, "a verdict came after the resolve", 31, RESOLVED, { ...closedAt(20), ...said(ATTACK) }, null],
  [
    17,
    "a verdict came in a channel's quiet hours",
    31,
    SAID,
    { ...said(UNCLEAR, at("half-hour", ATTACK)), held: ["pager"] },
    ["turned", "chat board", "", ""],
  ],
  [
    17,
    "the quiet hours are over in which a verdict came",
    60,
    AT_NIGHT,
    said(UNCLEAR, at("half-hour", ATTACK)),
    ["turned", "pager", "", ""],
  ],
  [
    15,
    "channels waited for a rise, which brings the verdict",
    6,
    WAITING,
    { ...ERROR, ...said(ATTACK) },
    ["worse", "chat board", "", ""],
  ],
  [19, "nothing has changed", 2, FIRST, {}, null],
  [1, "an info opened within group wait", 0.15, null, { occurrence: { severity: "info" } }, null],
  [3, "an error opened within group wait", 0, null, ERROR, ["first", ALL, "", ""]],
  [3, "a critical spike opened within group wait", 0, null, CRITICAL, ["first", ALL, "", ""]],
  [8, "the spike closed and goes on", 200, FIRST, settledAt(200), ["settled", ALL, "", ""]],
  [
    8,
    "the spike closed and goes on, under a silence",
    200,
    FIRST,
    { ...settledAt(200), ...SILENCED },
    ["settled", ALL, "", ""],
  ],
  [
    8,
    "the spike of a muted alert closed and goes on",
    200,
    after([0, SILENCED]),
    settledAt(200),
    ["settled", "", "", ""],
  ],
  [
    7,
    "a reopened alert's spike closed 29 minutes ago and goes on",
    69,
    REOPENED,
    later(30, { closedAtMs: NOW + 40 * MINUTE_MS, isSettled: true }),
    null,
  ],
  [19, "a spike that is not closed goes on", 200, FIRST, { occurrence: { isSettled: true } }, null],
  [4, "a settled alert has no later spike", 210, SETTLED, settledAt(200), null],
  [6, "a spike opened 30 minutes after the alert settled", 230, SETTLED, later(230), ["again", ALL, "", ""]],
  [3, "a spike opened 31 minutes after the alert settled", 232, SETTLED, later(231), ["first", ALL, "", ""]],
  [11, "a later spike opened while the alert is open", 31, FIRST, later(30), ["again", ALL, "", ""]],
  [
    11,
    "a later spike opened after a person acknowledged the alert",
    31,
    ACKNOWLEDGED,
    later(30),
    ["again", ALL, "", ""],
  ],
  [
    11,
    "a later spike opened within group interval of a reminder",
    245,
    REMINDED,
    later(244),
    ["again", "pager", "board", "chat"],
  ],
  [
    11,
    "a later spike opened under a silence",
    31,
    FIRST,
    { ...later(30), ...SILENCED },
    ["again", "", "", ""],
  ],
  [
    11,
    "a later spike opened, and its verdict is of another class",
    31,
    SAID,
    { ...later(30), ...said(at("first", ATTACK)) },
    ["again", ALL, "", ""],
  ],
  [11, "a later spike is critical", 31, FIRST, later(30, { severity: "critical" }), ["again", ALL, "", ""]],
  [
    12,
    "the severity of the later spike rose after its message",
    40,
    after([1], [31, later(30)]),
    later(30, { severity: "error" }),
    ["worse", ALL, "", ""],
  ],
  [19, "the later spike has been notified of", 40, after([1], [31, later(30)]), later(30), null],
  [
    9,
    "the later spike closed",
    60,
    after([1], [31, later(30)]),
    later(30, { closedAtMs: NOW }),
    ["resolved", ALL, "", ""],
  ],
  [
    15,
    "group interval is over for the channels that waited for the later spike",
    247,
    after([1], [242], [245, later(244)]),
    later(244),
    ["worse", "chat board", "", ""],
  ],
  [
    15,
    "a silence is over under which a later spike opened",
    40,
    after([1], [31, { ...later(30), ...SILENCED }]),
    later(30),
    ["worse", ALL, "", ""],
  ],
  [
    17,
    "an attack became a misfire",
    31,
    after([1, said(ATTACK)]),
    said(ATTACK, at("half-hour", MISFIRE)),
    ["turned", "chat", "board pager", ""],
  ],
  [
    19,
    "an attack became a scanner",
    31,
    after([1, said(ATTACK)]),
    said(ATTACK, at("half-hour", SCANNER)),
    null,
  ],
  [
    19,
    "an attack became unclear",
    31,
    after([1, said(ATTACK)]),
    said(ATTACK, at("half-hour", UNCLEAR)),
    null,
  ],
  [
    17,
    "an acknowledged misfire became an attack",
    31,
    acknowledged(after([1, said(MISFIRE)])),
    said(MISFIRE, at("half-hour", ATTACK)),
    ["turned", ALL, "", ""],
  ],
];

function listDecision(...given: Parameters<typeof decideAt>) {
  const decision = decideAt(...given);
  return (
    decision && [
      decision.reason,
      ...[decision.notified, decision.updated, decision.waiting].map((names) => names.join(" ")),
    ]
  );
}

test.each(TABLE)("case %i: %s", (_number, _what, minutes, alert, over, sent) => {
  expect(listDecision(minutes, alert, over)).toEqual(sent);
});

test("comments and assignments change no decision", () => {
  for (const [number, what, minutes, alert, over, sent] of TABLE)
    expect([number, what, listDecision(minutes, discussed(alert), over)]).toEqual([number, what, sent]);
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

test("the table has a row for each case", () => {
  const numbers = new Set(TABLE.map(([number]) => number));
  expect([...numbers].toSorted((a, b) => a - b)).toEqual(Array.from({ length: 19 }, (_, index) => index + 1));
});

test("an acknowledged alert fires again at a second wave, and stays acknowledged when it gets worse", () => {
  expect(decideAt(31, ACKNOWLEDGED, later(30))?.alert).toMatchObject({ state: "firing", spikeId: 2 });
  expect(decideAt(31, ACKNOWLEDGED, ERROR)?.alert).toMatchObject({ state: "acknowledged", spikeId: 1 });
});

test("a settled alert is resolved, and its reopening is counted", () => {
  expect(SETTLED).toMatchObject({ state: "resolved", resolvedAtMs: NOW + 200 * MINUTE_MS });
  const reopened = decideAt(230, SETTLED, later(230))?.alert ?? null;
  const closed = later(230, { closedAtMs: NOW + 240 * MINUTE_MS });
  // It is held open for half an hour, as after any reopening.
  expect(decideAt(269, reopened, closed)).toBeNull();
  expect(decideAt(270, reopened, closed)?.reason).toBe("resolved");
});

const SENDS = { reason: "join", notified: [], updated: [], waiting: [] } as const;
test.each<[boolean, string, Parameters<typeof lacksVerdict>[0], readonly StoredVerdict[]]>([
  [true, "no verdict", { ...SENDS, reason: "first", notified: ["chat"] }, []],
  [true, "a verdict of 16 seconds ago", { ...SENDS, notified: ["chat"] }, [ATTACK]],
  [true, "such a verdict, in place", { ...SENDS, updated: ["chat"] }, [ATTACK]],
  [true, "such a verdict, later", { ...SENDS, waiting: ["chat"] }, [ATTACK]],
  [false, "a verdict of 15 seconds ago", { ...SENDS, notified: ["chat"] }, [ATTACK, LATE]],
  [false, "such a verdict, for nobody", SENDS, [ATTACK]],
  [false, "no verdict, about advice", { ...SENDS, reason: "advice", notified: ["chat"] }, []],
  [false, "no verdict, about the end", { ...SENDS, reason: "resolved", notified: ["chat"] }, []],
])("lacksVerdict returns %s for a message with %s", (expected, _what, decision, verdicts) => {
  expect(lacksVerdict(decision, verdicts, ATTACK.judgedAt + 16_000)).toBe(expected);
});

test("a channel gets one message for each class that a verdict turns to, however often the verdict changes", () => {
  const words = ["unclear", "attack", "scanner", "misfire", "misfire", "unclear"] as const;
  const verdicts = VERDICT_TIMES.map((look, index) =>
    at(look, verdictOf({ said: words[index] ?? "attack", odds: 0.9 + index / 100 })),
  );
  let alert = FIRST;
  const sent: string[] = [];
  for (const [index, minutes] of [2, 3, 6, 31, 361, 1_441].entries())
    for (const further of [0, 1, 2]) {
      const decision = decideAt(minutes + further, alert, said(...verdicts.slice(0, index + 1)));
      if (decision?.reason === "turned")
        sent.push(`${minutes} ${[...decision.notified, ...decision.updated].sort().join(" ")}`);
      alert = decision?.alert ?? alert;
    }
  expect(sent).toEqual(["3 board chat pager", "31 board chat pager"]);
});
