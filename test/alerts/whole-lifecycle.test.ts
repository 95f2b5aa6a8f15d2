import fc from "fast-check";
import { expect, test } from "vitest";
import type { AlertSpike } from "#alerts/rules/alert-spike.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { ENDINGS } from "#model/words.ts";
import { draws } from "../support/sample.ts";
import { createLifecycleWorld, type LifecycleWorld, step, TIMING } from "./lifecycle-world.ts";
import type { PureAlert, PureService, Said } from "./pure-service.ts";

const RINGING: readonly string[] = ["first", "join", "again", "worse", "repeat"];
const ENDS: readonly string[] = ENDINGS;

function checkAlerts({ alerts }: PureService): void {
  const open = alerts
    .filter(({ record }) => record.state !== "resolved")
    .map(({ fingerprint }) => fingerprint);
  expect(new Set(open).size).toBe(open.length);
  for (const { record } of alerts) {
    const { transitions } = record;
    expect(transitions.map(({ transition }) => transition)).toEqual(transitions.map((_, index) => index + 1));
    let state = "none";
    for (const entry of transitions) {
      const isLegal: Record<string, boolean> = {
        first: state === "none",
        again: state !== "none",
        worse: state === "firing" || state === "acknowledged",
        join: state === "firing" || state === "acknowledged",
        repeat: state === "firing",
        advice: state === "firing" || state === "acknowledged",
        acknowledged: state === "firing",
        resolved: state === "firing" || state === "acknowledged",
        settled: state === "firing" || state === "acknowledged",
      };
      expect([entry.reason, state, isLegal[entry.reason]]).toEqual([entry.reason, state, true]);
      state = entry.state;
    }
    expect(state).toBe(record.state);
  }
}

/** Checks the messages of one alert on one channel: the first is firing, and a resolve follows only a firing. */
function checkLanes({ said }: PureService): void {
  expect(new Set(said.map(({ dedupeKey }) => dedupeKey)).size).toBe(said.length);
  for (const lane of Map.groupBy(said, ({ alertId, channel }) => `${alertId} ${channel}`).values()) {
    expect(lane[0]?.reason).toBe("first");
    let isFiring = false;
    let isOverAsHeard = false;
    for (const [index, { reason, content, transition }] of lane.entries()) {
      const { isAgain = false, isQuiet = false } = content as { isAgain?: boolean; isQuiet?: boolean };
      expect(transition).toBeGreaterThan(lane[index - 1]?.transition ?? 0);
      expect([reason, isFiring || RINGING.includes(reason)]).toEqual([reason, true]);
      const isNewsAgain = RINGING.includes(reason) && index > 0 && isOverAsHeard;
      expect([reason, isAgain]).toEqual([reason, isNewsAgain]);
      isFiring = !ENDS.includes(reason);
      if (!isQuiet && reason !== "acknowledged") isOverAsHeard = !isFiring;
    }
    checkRung(lane);
  }
}

function checkRung(lane: readonly Said[]): void {
  const notified = lane.filter(
    ({ reason, channel, content }) =>
      channel !== "pager" && RINGING.includes(reason) && (content as { isQuiet?: boolean }).isQuiet !== true,
  );
  for (const [index, next] of notified.entries()) {
    const before = notified[index - 1];
    if (before === undefined || next.atMs - before.atMs >= TIMING.groupIntervalMs) continue;
    const [from, to] = [before, next].map(({ content }) => (content as { severity: string }).severity);
    expect([from, to]).toEqual([expect.stringMatching(/info|warning/), "critical"]);
  }
}

/** Returns the rows that were written just now. */
function checkSilence({ spikes, isSilenced }: LifecycleWorld, rows: readonly Said[]): void {
  for (const { reason, content } of rows) {
    if (!RINGING.includes(reason) && reason !== "advice") continue;
    const spike = spikes.get((content as { ruleId: string }).ruleId);
    const isMuted = spike !== undefined && spike.closedAtMs === null && isSilenced(spike);
    expect([reason, isMuted]).toEqual([reason, false]);
  }
}

/** Checks that an alert that a person has resolved does not notify any more, nor do the members of its incident. */
function checkClosed({ spikes, closed }: LifecycleWorld, rows: readonly Said[]): void {
  for (const { reason, content } of rows) {
    const { ruleId } = content as { ruleId: string };
    const spike = spikes.get(ruleId);
    const isRung = RINGING.includes(reason);
    expect([reason, ruleId, isRung && closed.has(spike?.id ?? 0)]).toEqual([reason, ruleId, false]);
  }
}

/** Checks that members make no news while their incident is open. */
function checkMembers({ spikes }: LifecycleWorld, rows: readonly Said[]): void {
  const incident = spikes.get(SOURCES_RULE);
  for (const { reason, content } of rows) {
    const spike = spikes.get((content as { ruleId: string }).ruleId);
    const isMember = incident?.closedAtMs === null && spike?.memberOf === incident.id;
    expect([reason, spike?.ruleId, isMember && !ENDS.includes(reason) && reason !== "acknowledged"]).toEqual([
      reason,
      spike?.ruleId,
      false,
    ]);
  }
}

/** Every rule that still spikes was notified, by itself or by its incident, unless a person has resolved it. */
function checkTold({ service, spikes, now }: LifecycleWorld): void {
  const isNight = (new Date(now()).getUTCHours() + 2) % 24 < 8;
  const closedByHand = ({ record }: PureAlert, spike: AlertSpike) =>
    record.state === "resolved" && (record.spikeId ?? 0) >= spike.id;
  for (const spike of spikes.values()) {
    if (spike.closedAtMs !== null) continue;
    const own = service.alerts.findLast(({ fingerprint }) => fingerprint === fingerprintOf(spike));
    const incidents = service.alerts.filter(({ message }) =>
      message.members?.some(({ ruleId }) => ruleId === spike.ruleId),
    );
    const incident = spikes.get(SOURCES_RULE);
    const isOfOpen = spike.memberOf === incident?.id && incident?.closedAtMs === null;
    // The rules of attackers that a person has dealt with are no news.
    if (
      isOfOpen &&
      service.alerts.some(({ record }) => record.spikeId === incident.id && record.state === "resolved")
    )
      continue;
    const speaking = [...(own === undefined ? [] : [own]), ...incidents];
    if (speaking.some((alert) => closedByHand(alert, spike))) continue;
    if (speaking.some(({ record }) => record.state === "acknowledged")) continue;
    const channels = ["chat", ...(isNight ? [] : ["board"])];
    for (const channel of channels) {
      const last = speaking.map(({ id }) =>
        service.said.findLast(
          (row) => row.alertId === id && row.channel === channel && row.reason !== "acknowledged",
        ),
      );
      const isFiring = last.some((row) => row !== undefined && !ENDS.includes(row.reason));
      expect([spike.ruleId, channel, isFiring]).toEqual([spike.ruleId, channel, true]);
    }
  }
}

test("for random attacks, acts, silences and times, the lifecycle keeps its promises", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = createLifecycleWorld();
      const { service } = world;
      for (const next of steps) {
        world.act(next);
        const before = service.said.length;
        world.tick();
        checkAlerts(service);
        checkSilence(world, service.said.slice(before));
        checkClosed(world, service.said.slice(before));
        checkMembers(world, service.said.slice(before));
        // An alert says one thing at a time.
        for (let more = 0; more < 3; more += 1) world.tick();
        const after = service.said.length;
        world.tick();
        expect(service.said.slice(after)).toEqual([]);
      }
      world.settle();
      checkTold(world);
      world.end();
      checkAlerts(service);
      checkLanes(service);
      expect(service.alerts.filter(({ record }) => record.state !== "resolved")).toEqual([]);
      for (const lane of Map.groupBy(
        service.said,
        ({ alertId, channel }) => `${alertId} ${channel}`,
      ).values())
        expect(ENDS).toContain(lane.at(-1)?.reason);
    }),
    { numRuns: draws(50, 300) },
  );
});
