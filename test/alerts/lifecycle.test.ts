import fc from "fast-check";
import { expect, test } from "vitest";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { type AlertSpike } from "#alerts/rules/alert-spike.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { draws } from "../support/sample.ts";
import { alertSpike, endAt, NOW, play } from "./support.ts";

const severities = ["info", "warning", "error", "critical"] as const;

const step = fc.record({
  minutes: fc.oneof(fc.integer({ min: 1, max: 45 }), fc.integer({ min: 1, max: 600 })),
  act: fc.constantFrom("open", "close", "settle", "grade", "advise", "silence", "acknowledge", "wait"),
  severity: fc.constantFrom(...severities),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface World {
  spike: AlertSpike | null;
  hasAdvice: boolean;
  isSilenced: boolean;
  nowMs: number;
}

function act(world: World, alerts: AlertRecord[], { act, minutes, severity }: Step): void {
  world.nowMs += minutes * MINUTE_MS;
  const { spike, nowMs } = world;
  const isOpen = spike !== null && spike.closedAtMs === null;
  if (act === "open" && !isOpen)
    world.spike = alertSpike({ id: (spike?.id ?? 0) + 1, openedAtMs: nowMs, severity });
  if (act === "close" && isOpen) world.spike = endAt(spike, nowMs);
  if (act === "settle" && isOpen) world.spike = { ...spike, closedAtMs: nowMs };
  if (act === "grade" && isOpen) world.spike = { ...spike, severity };
  if (act === "advise") world.hasAdvice = true;
  if (act === "silence") world.isSilenced = !world.isSilenced;
  const alert = alerts.at(-1);
  if (act === "acknowledge" && alert?.state === "firing") {
    alerts.pop();
    const transition = alert.transition + 1;
    const entry = { transition, at: nowMs, reason: "acknowledged", state: "acknowledged" } as const;
    const rest = {
      severity: null,
      silencedBy: null,
      mutedBy: null,
      channels: [],
      held: [],
      quiet: [],
      waiting: [],
      hasAdvice: false,
    };
    alerts.push({
      ...alert,
      transition,
      state: "acknowledged",
      transitions: [...alert.transitions, { ...entry, ...rest }],
    });
  }
}

function check(alerts: readonly AlertRecord[], world: World): void {
  for (const alert of alerts) {
    const reasons = alert.transitions.map((entry) => entry.reason);
    expect(reasons.filter((reason) => reason === "first")).toHaveLength(1);
    expect(reasons[0]).toBe("first");
    expect(alert.transitions.map((entry) => entry.transition)).toEqual(reasons.map((_, n) => n + 1));
    expect(alert.transition).toBe(reasons.length);
    expect((alert.resolvedAtMs !== null) === (alert.state === "resolved")).toBe(true);
    checkChannels(alert);
  }
  expect(alerts.slice(0, -1).every((alert) => alert.state === "resolved")).toBe(true);
  const [earlier, later] = alerts.slice(-2);
  const gapMs = (later?.firedAtMs ?? Number.POSITIVE_INFINITY) - (earlier?.resolvedAtMs ?? 0);
  expect(gapMs).toBeGreaterThan(30 * MINUTE_MS);
  const isSpiking = world.spike !== null && world.spike.closedAtMs === null;
  expect(isSpiking && alerts.at(-1)?.state === "resolved").toBe(false);
}

/** Checks that messages are sent between firing and resolve only, and that every notified channel gets the resolve. */
function checkChannels(alert: AlertRecord): void {
  const firing = new Set<string>();
  let isOpen = false;
  for (const { reason, channels } of alert.transitions) {
    const isNews = ["first", "again", "worse", "repeat"].includes(reason);
    expect(isOpen || reason === "first" || reason === "again").toBe(true);
    expect(channels.every((channel) => isNews || firing.has(channel))).toBe(true);
    isOpen = reason !== "resolved" && reason !== "settled";
    for (const channel of channels)
      if (isOpen) firing.add(channel);
      else firing.delete(channel);
    expect(isOpen || firing.size === 0).toBe(true);
  }
}

test("for random sequences: one `first` per alert, consecutive transitions, and a resolve for every notified channel", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const alerts: AlertRecord[] = [];
      const world: World = { spike: null, hasAdvice: false, isSilenced: false, nowMs: NOW };
      for (const next of steps) {
        act(world, alerts, next);
        if (world.spike !== null) play(alerts, { ...world, spike: world.spike });
        check(alerts, world);
      }
    }),
    { numRuns: draws(150, 1_000) },
  );
});

test("a rule that flaps for a day within half an hour is one alert, and each wave notifies once", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 15, max: 120 }),
      fc.integer({ min: 1, max: 30 }),
      (onMinutes, offMinutes) => {
        const alerts: AlertRecord[] = [];
        const said: string[] = [];
        let id = 0;
        for (let minute = 0; minute < 1_440; minute += onMinutes + offMinutes) {
          const openedAtMs = NOW + minute * MINUTE_MS;
          const open = alertSpike({ id: ++id, openedAtMs });
          for (let age = 0; age < onMinutes + offMinutes; age += 1) {
            const spike = age < onMinutes ? open : endAt(open, openedAtMs + onMinutes * MINUTE_MS);
            said.push(...play(alerts, { spike, nowMs: openedAtMs + age * MINUTE_MS }));
          }
        }
        expect(alerts).toHaveLength(1);
        const waves = said.filter((reason) => reason === "first" || reason === "again");
        expect(waves).toEqual(["first", ...Array<string>(id - 1).fill("again")]);
        // Only the first end is sent: after it, each wave begins within the hold of the one before.
        expect(said.filter((reason) => reason === "resolved").length).toBeLessThanOrEqual(1);
        expect(said).not.toContain("worse");
      },
    ),
  );
});
