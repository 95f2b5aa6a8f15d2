import { expect, test } from "vitest";
import { lastSent, notifiedChannels, toNotifications } from "#alerts/rules/alert-history.ts";
import { type AlertRecord, NOBODY, nextAlert } from "#alerts/rules/alert-record.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { ENDINGS } from "#model/words.ts";
import { incidentWith } from "../delivery/support/messages.ts";
import { alertSpike, endAt, NOW, play } from "./support.ts";

const minutes = (count: number) => NOW + count * MINUTE_MS;

test("an alert fires once, repeats every four hours and resolves when its spike closes", () => {
  const alerts: AlertRecord[] = [];
  const spike = alertSpike();
  expect(play(alerts, { spike, nowMs: NOW })).toEqual(["first"]);
  expect(play(alerts, { spike, nowMs: NOW + 4 * HOUR_MS - 1 })).toEqual([]);
  expect(play(alerts, { spike, nowMs: NOW + 4 * HOUR_MS })).toEqual(["repeat"]);
  const closed = endAt(spike, NOW + 5 * HOUR_MS);
  expect(play(alerts, { spike: closed, nowMs: NOW + 5 * HOUR_MS })).toEqual(["resolved"]);
  expect(play(alerts, { spike: closed, nowMs: NOW + 9 * HOUR_MS })).toEqual([]);
  expect(alerts).toMatchObject([{ state: "resolved", transition: 3, firedAtMs: NOW }]);
});

test("a spike that closes while what rose goes on settles the alert, under a silence as well", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  // Half of the threshold of 10.
  const closed = (windowCount: number) => alertSpike({ closedAtMs: minutes(200), windowCount });
  const end = (windowCount: number) =>
    play(structuredClone(alerts), { spike: closed(windowCount), nowMs: minutes(200), isSilenced: true });
  expect(end(5)).toEqual(["settled"]);
  expect(end(4)).toEqual(["resolved"]);
});

test("an incident is resolved and never settles, whatever its count", () => {
  const alerts: AlertRecord[] = [];
  const incident = alertSpike({ kind: "sources" });
  play(alerts, { spike: incident, nowMs: NOW });
  expect(play(alerts, { spike: { ...incident, closedAtMs: minutes(20) }, nowMs: minutes(20) })).toEqual([
    "resolved",
  ]);
});

test("a rising severity notifies once; a falling one and its return do not", () => {
  const alerts: AlertRecord[] = [];
  const at = (severity: "warning" | "error" | "critical", nowMs: number) =>
    play(alerts, { spike: alertSpike({ severity }), nowMs });
  expect(at("warning", NOW)).toEqual(["first"]);
  expect(at("critical", minutes(1))).toEqual(["worse"]);
  expect(at("error", minutes(2))).toEqual([]);
  expect(at("critical", minutes(3))).toEqual([]);
});

test("advice after the first message notifies once; advice in the first message does not", () => {
  const late: AlertRecord[] = [];
  play(late, { spike: alertSpike(), nowMs: NOW });
  expect(play(late, { spike: alertSpike(), nowMs: minutes(1), hasAdvice: true })).toEqual(["advice"]);
  expect(play(late, { spike: alertSpike(), nowMs: minutes(2), hasAdvice: true })).toEqual([]);
  const early: AlertRecord[] = [];
  expect(play(early, { spike: alertSpike(), nowMs: NOW, hasAdvice: true })).toEqual(["first"]);
});

test("a spike that closed before the first run notifies `first` and `resolved`", () => {
  const alerts: AlertRecord[] = [];
  const spike = alertSpike({ closedAtMs: minutes(20) });
  expect(play(alerts, { spike, nowMs: minutes(30) })).toEqual(["first", "resolved"]);
});

test("within thirty minutes of the resolve the same alert fires again; after that another one does", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  play(alerts, { spike: alertSpike({ closedAtMs: minutes(20) }), nowMs: minutes(20) });
  const again = alertSpike({ id: 2, openedAtMs: minutes(50) });
  expect(play(structuredClone(alerts), { spike: again, nowMs: minutes(50) })).toEqual(["again"]);
  const later = { ...again, openedAtMs: minutes(51) };
  expect(play(alerts, { spike: later, nowMs: minutes(51) })).toEqual(["first"]);
  expect(alerts).toMatchObject([
    { state: "resolved", firedAtMs: NOW },
    { state: "firing", firedAtMs: minutes(51), transition: 1 },
  ]);
});

test("a spike that opened, in event time, before its predecessor's resolve was written is not lost", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  play(alerts, { spike: alertSpike({ closedAtMs: minutes(20) }), nowMs: minutes(21) });
  expect(play(alerts, { spike: alertSpike({ id: 2, openedAtMs: minutes(20) }), nowMs: minutes(22) })).toEqual(
    ["again"],
  );
});

test("a reopened alert stays open through short pauses, and each later spike notifies again", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  play(alerts, { spike: alertSpike({ closedAtMs: minutes(20) }), nowMs: minutes(20) });
  play(alerts, { spike: alertSpike({ id: 2, openedAtMs: minutes(30) }), nowMs: minutes(30) });
  const closed = alertSpike({ id: 2, openedAtMs: minutes(30), closedAtMs: minutes(50) });
  expect(play(alerts, { spike: closed, nowMs: minutes(79) })).toEqual([]);
  expect(play(alerts, { spike: alertSpike({ id: 3, openedAtMs: minutes(79) }), nowMs: minutes(79) })).toEqual(
    ["again"],
  );
  const over = alertSpike({ id: 3, openedAtMs: minutes(79), closedAtMs: minutes(100) });
  expect(play(alerts, { spike: over, nowMs: minutes(129) })).toEqual([]);
  expect(play(alerts, { spike: over, nowMs: minutes(130) })).toEqual(["resolved"]);
});

test("an acknowledged alert sends no reminder, and notifies `worse` and `resolved`", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  const fired = alerts.pop();
  if (fired === undefined) throw new Error("nothing fired");
  alerts.push({ ...fired, state: "acknowledged" });
  expect(play(alerts, { spike: alertSpike(), nowMs: NOW + 9 * HOUR_MS })).toEqual([]);
  const worse = alertSpike({ severity: "critical" });
  expect(play(alerts, { spike: worse, nowMs: NOW + 9 * HOUR_MS })).toEqual(["worse"]);
  expect(alerts.at(-1)?.state).toBe("acknowledged");
  expect(play(alerts, { spike: endAt(worse, NOW + 10 * HOUR_MS), nowMs: NOW + 10 * HOUR_MS })).toEqual([
    "resolved",
  ]);
});

test("a silence mutes an alert for every channel; after it the channels without a notification are notified", () => {
  const alerts: AlertRecord[] = [];
  const spike = alertSpike();
  expect(play(alerts, { spike, nowMs: NOW, isSilenced: true })).toEqual(["first"]);
  expect(play(alerts, { spike, nowMs: NOW + 5 * HOUR_MS, isSilenced: true, hasAdvice: true })).toEqual([]);
  expect(alerts.at(-1)?.transitions.flatMap((entry) => entry.channels)).toEqual([]);
  expect(play(alerts, { spike, nowMs: NOW + 6 * HOUR_MS, hasAdvice: true })).toEqual(["repeat"]);
  expect(alerts.at(-1)?.transitions.at(-1)).toMatchObject({ channels: ["chat", "pager"], hasAdvice: true });
});

test("a rise under a silence notifies after the silence", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  const worse = alertSpike({ severity: "critical" });
  expect(play(alerts, { spike: worse, nowMs: minutes(1), isSilenced: true })).toEqual(["worse"]);
  expect(play(alerts, { spike: worse, nowMs: minutes(2), isSilenced: true })).toEqual([]);
  // The channel was notified three minutes ago, so it may not be notified for another two, silence or not.
  const severe = alertSpike({ severity: "error" });
  const patient: AlertRecord[] = [];
  play(patient, { spike: severe, nowMs: NOW });
  play(patient, { spike: worse, nowMs: minutes(1), isSilenced: true });
  expect(play(patient, { spike: worse, nowMs: minutes(3) })).toEqual([]);
  expect(play(patient, { spike: worse, nowMs: minutes(5) })).toEqual(["worse"]);
  expect(play(alerts, { spike: worse, nowMs: minutes(3) })).toEqual(["worse"]);
  expect(play(alerts, { spike: worse, nowMs: minutes(4) })).toEqual([]);
});

test("a silence does not mute the resolve of a notified alert, and no channel gets a resolve alone", () => {
  const notified: AlertRecord[] = [];
  play(notified, { spike: alertSpike(), nowMs: NOW });
  const closed = alertSpike({ closedAtMs: minutes(20) });
  play(notified, { spike: closed, nowMs: minutes(20), isSilenced: true });
  expect(notified.at(-1)?.transitions.at(-1)).toMatchObject({
    reason: "resolved",
    channels: ["chat", "pager"],
  });
  const untold: AlertRecord[] = [];
  play(untold, { spike: alertSpike(), nowMs: NOW, isSilenced: true });
  play(untold, { spike: closed, nowMs: minutes(20) });
  expect(untold.at(-1)?.transitions.at(-1)).toMatchObject({ reason: "resolved", channels: [] });
});

/** An alert of these transitions, a minute apart; each a warning that went to the channels named. */
function historyOf(
  ...entries: (Partial<AlertRecord["transitions"][number]> & { reason: string })[]
): AlertRecord {
  const rest = {
    severity: "warning",
    silencedBy: null,
    mutedBy: null,
    channels: [],
    held: [],
    quiet: [],
    waiting: [],
    hasAdvice: false,
  };
  const transitions = entries.map(
    (entry, index) =>
      ({
        ...rest,
        transition: index + 1,
        at: minutes(index),
        state: "firing",
        ...entry,
      }) as AlertRecord["transitions"][number],
  );
  const transition = transitions.length;
  return { state: "firing", transition, firedAtMs: NOW, resolvedAtMs: null, spikeId: 1, transitions };
}

test("a message that quiet hours or a silence withheld is due, and a new channel is notified with the others", () => {
  const heard = (alert: AlertRecord) =>
    ["chat", "pager", "new"].map((channel) => {
      const { atMs, isPending } = lastSent(alert, channel);
      return isPending ? null : atMs;
    });
  const first = { reason: "first", channels: ["chat", "pager"] };
  expect(heard(historyOf(first))).toEqual([NOW, NOW, NOW]);
  const held = { reason: "repeat", channels: ["chat"], held: ["pager"] };
  expect(heard(historyOf(first, held))).toEqual([minutes(1), null, minutes(1)]);
  expect(heard(historyOf(first, { reason: "repeat", channels: ["chat"] }))).toEqual([
    minutes(1),
    NOW,
    minutes(1),
  ]);
  expect(heard(historyOf(first, { reason: "worse", silencedBy: 1 }))).toEqual([null, null, null]);
  expect(heard(historyOf({ reason: "first", mutedBy: "inhibition" }))).toEqual([null, null, null]);
  expect(heard(historyOf(first, { reason: "acknowledged" }))).toEqual([NOW, NOW, NOW]);
});

test("only messages since the last resolve have to be resolved on a channel", () => {
  const first = { reason: "first", channels: ["chat", "pager"] };
  const resolved = { reason: "resolved", channels: ["chat", "pager"] };
  expect(notifiedChannels(historyOf(first, { reason: "repeat", channels: ["desk"] }))).toEqual(
    new Set(["chat", "pager", "desk"]),
  );
  const again = historyOf(first, resolved, { reason: "worse", channels: ["chat"] });
  expect(notifiedChannels(again)).toEqual(new Set(["chat"]));
  expect(lastSent(again, "pager")).toEqual({ atMs: minutes(2), isPending: false });
});

test("a transition keeps what muted it, and a resolve is muted by nothing", () => {
  const mute = { silencedBy: 3, mutedBy: null };
  const facts = { occurrence: alertSpike(), recipients: NOBODY, mute, nowMs: NOW };
  const first = nextAlert(null, { ...facts, reason: "first", mute: { ...mute, mutedBy: "incident" } });
  expect(first.transitions).toMatchObject([{ reason: "first", silencedBy: 3, mutedBy: "incident" }]);
  expect(nextAlert(first, { ...facts, reason: "worse" }).transitions.at(-1)).toMatchObject({ mutedBy: null });
  const inhibited = { ...mute, mutedBy: "inhibition" } as const;
  const resolved = nextAlert(first, { ...facts, reason: "resolved", mute: inhibited });
  expect(resolved.transitions.at(-1)).toMatchObject({ silencedBy: null, mutedBy: null });
});

test.each(["join", "again", "worse", "repeat", "turned"] as const)(
  "a message with the reason %s is first for a new channel, quiet where it is an update, and says that the alert fires again",
  (reason) => {
    const message = { ...incidentWith(1), reason };
    const read = (alert: AlertRecord) =>
      toNotifications(message, { notified: ["new"], updated: ["chat"] }, alert).map(({ content }) => [
        content.reason,
        content.isQuiet,
        content.isAgain,
      ]);
    const first = { reason: "first", channels: ["chat"] };
    const ended = (end: string) => historyOf(first, { reason: end, channels: ["chat"], state: "resolved" });
    expect(read(historyOf(first))).toEqual([
      ["first", undefined, undefined],
      [reason, true, undefined],
    ]);
    for (const end of ENDINGS)
      expect(read(ended(end))).toEqual([
        ["first", undefined, undefined],
        [reason, true, true],
      ]);
  },
);
