import fc from "fast-check";
import { expect, test } from "vitest";
import { type AdviceRow, ANSWER_KEEPS_MS } from "../../src/advice/advice-row.ts";
import type { AlertSpike } from "../../src/alert/alert-spike.ts";
import type { Scene } from "../../src/alert/assess-alert.ts";
import { fingerprintOf } from "../../src/alert/fingerprint.ts";
import { findSilence, type Silence } from "../../src/alert/silence.ts";
import { DEFAULT_TIMING, type Routing } from "../../src/routing/routing.ts";
import { createPureService, type HeldAlert, type PureService, type Said } from "./pure-service.ts";
import { alertSpike, HOUR_MS, MINUTE_MS, NOW } from "./support.ts";

const CHANNELS = ["chat", "board", "pager"];
const RULES = ["1", "2", "3", "4", "5"];
const SEVERITIES = ["info", "warning", "error", "critical"] as const;
const TIMING = { ...DEFAULT_TIMING, groupWaitMs: 0, groupFrom: 3 };
const RINGING: readonly string[] = ["first", "worse", "repeat"];
/** The pager hears of errors and worse; the board of everything, but not at night. */
const ROUTING: Routing = {
  channels: CHANNELS,
  root: {
    matchers: {},
    channels: ["chat", "board"],
    timing: TIMING,
    continue: false,
    routes: [
      {
        matchers: { severity: ["error", "critical"] },
        channels: ["pager", "chat", "board"],
        timing: { ...TIMING, repeatIntervalMs: HOUR_MS },
        continue: false,
        routes: [],
      },
    ],
  },
  inhibitions: [],
  quietHours: [
    {
      timeZone: "UTC",
      days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"],
      fromMinute: 22 * 60,
      toMinute: 6 * 60,
      channels: ["board"],
      matchers: {},
      critical: "tell",
    },
  ],
};

const step = fc.record({
  ms: fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 20_000 }) },
    { weight: 3, arbitrary: fc.integer({ min: 0, max: 20 * MINUTE_MS }) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 6 * HOUR_MS }) },
  ),
  act: fc.constantFrom(
    "open",
    "open",
    "open",
    "close",
    "grade",
    "calm",
    "silence",
    "hush",
    "ack",
    "resolve",
    "advise",
    "wait",
  ),
  rules: fc.subarray(RULES, { minLength: 1 }),
  severity: fc.constantFrom(...SEVERITIES),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

function createWorld() {
  const service = createPureService();
  const spikes = new Map<string, AlertSpike>();
  let silences: Silence[] = [];
  const asks: AdviceRow[] = [];
  /** Spikes whose alert a person has resolved. */
  const closed = new Set<number>();
  let [nowMs, ids] = [NOW, 0];

  const change = (rules: readonly string[], to: (spike: AlertSpike) => AlertSpike) => {
    for (const rule of rules) {
      const spike = spikes.get(rule);
      if (spike !== undefined && spike.closedAtMs === null) spikes.set(rule, to(spike));
    }
  };
  const scene = (): Scene => {
    const firing = [...spikes.values()].filter(({ closedAtMs }) => closedAtMs === null);
    const mannerOf = (name: string) => (name === "pager" ? "keyed" : name === "board" ? "edits" : "rings");
    return { nowMs, routing: ROUTING, asks, silences, firing, mannerOf };
  };
  const isSilenced = (spike: AlertSpike) => findSilence(silences, spike, nowMs) !== null;
  const pick = (rules: readonly string[]) =>
    service.alerts.filter(({ message }) => message.ruleId === null || rules.includes(message.ruleId));

  return {
    service,
    spikes,
    closed,
    isSilenced,
    now: () => nowMs,
    act({ ms, act, rules, severity }: Step): void {
      nowMs += ms;
      const grade = SEVERITIES.indexOf(severity);
      if (act === "open")
        for (const ruleId of rules)
          if (spikes.get(ruleId)?.closedAtMs !== null)
            spikes.set(ruleId, alertSpike({ id: (ids += 1), ruleId, severity, openedAtMs: nowMs }));
      if (act === "close") change(rules, (spike) => ({ ...spike, closedAtMs: nowMs }));
      if (act === "grade")
        change(rules, (spike) =>
          SEVERITIES.indexOf(spike.severity) < grade ? { ...spike, severity } : spike,
        );
      if (act === "calm")
        change(rules, (spike) => ({ ...spike, windowCount: spike.windowCount < spike.threshold ? 50 : 3 }));
      if (act === "silence") {
        const expiresAtMs = nowMs + 40 * MINUTE_MS;
        silences = [
          ...silences,
          { id: silences.length + 1, startsAtMs: nowMs, expiresAtMs, matchers: { rule: rules } },
        ];
      }
      if (act === "hush") silences = [];
      if (act === "ack") for (const alert of pick(rules)) service.acknowledge(alert, nowMs);
      if (act === "resolve")
        for (const alert of pick(rules).filter(({ record }) => record.state !== "resolved")) {
          for (const { ruleId } of alert.message.members ?? [alert.message])
            closed.add(spikes.get(ruleId ?? "")?.id ?? 0);
          service.resolve(alert, nowMs);
        }
      if (act === "advise")
        for (const ruleId of rules)
          asks.push({
            zoneId: 101,
            ruleId,
            askedAtMs: nowMs - ANSWER_KEEPS_MS / 2,
            success: true,
            errorKey: null,
          } as AdviceRow);
    },
    tick(): void {
      service.tick([...spikes.values()], scene());
    },
    /** Everything ends, and time passes until nothing holds anything back. */
    settle(): void {
      silences = [];
      for (let count = 0; count < 3; count += 1) {
        nowMs += 10 * MINUTE_MS;
        this.tick();
      }
    },
    end(): void {
      change(RULES, (spike) => ({ ...spike, closedAtMs: nowMs }));
      for (let count = 0; count < 3; count += 1) {
        this.tick();
        nowMs += 5 * HOUR_MS;
      }
    },
  };
}

type World = ReturnType<typeof createWorld>;

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
        worse: state !== "none",
        repeat: state === "firing",
        advice: state === "firing" || state === "acknowledged",
        acknowledged: state === "firing",
        resolved: state === "firing" || state === "acknowledged",
      };
      expect([entry.reason, state, isLegal[entry.reason]]).toEqual([entry.reason, state, true]);
      state = entry.state;
    }
    expect(state).toBe(record.state);
  }
}

/** What one channel is sent of one alert: it begins to fire, and ends only what fires. */
function checkLanes({ said }: PureService): void {
  expect(new Set(said.map(({ dedupeKey }) => dedupeKey)).size).toBe(said.length);
  for (const lane of Map.groupBy(said, ({ alertId, channel }) => `${alertId} ${channel}`).values()) {
    expect(lane[0]?.reason).toBe("first");
    let isFiring = false;
    let isOverAsHeard = false;
    for (const [index, { reason, content, transition }] of lane.entries()) {
      const { isAgain = false, isQuiet = false } = content as { isAgain?: boolean; isQuiet?: boolean };
      if (index > 0) expect(transition).toBeGreaterThan(lane[index - 1]?.transition ?? 0);
      if (!RINGING.includes(reason)) expect([reason, isFiring]).toEqual([reason, true]);
      if (RINGING.includes(reason) && index > 0) expect([reason, isAgain]).toEqual([reason, isOverAsHeard]);
      isFiring = reason !== "resolved";
      if (!isQuiet && reason !== "acknowledged") isOverAsHeard = !isFiring;
    }
    checkRung(lane);
  }
}

function checkRung(lane: readonly Said[]): void {
  const rung = lane.filter(
    ({ reason, channel, content }) =>
      channel !== "pager" && RINGING.includes(reason) && (content as { isQuiet?: boolean }).isQuiet !== true,
  );
  for (const [index, next] of rung.entries()) {
    const before = rung[index - 1];
    if (before === undefined || next.atMs - before.atMs >= TIMING.groupIntervalMs) continue;
    const [from, to] = [before, next].map(({ content }) => (content as { severity: string }).severity);
    expect([from, to]).toEqual([expect.stringMatching(/info|warning/), "critical"]);
  }
}

/** Of the rows that were written just now. */
function checkSilence({ spikes, isSilenced }: World, rows: readonly Said[]): void {
  for (const { reason, content, isGroup } of rows) {
    if (!RINGING.includes(reason) && reason !== "advice") continue;
    const { ruleId, members = [] } = content as { ruleId: string | null; members?: { ruleId: string }[] };
    const named = isGroup ? members.map((member) => member.ruleId) : [ruleId ?? ""];
    const firing = named
      .flatMap((rule) => spikes.get(rule) ?? [])
      .filter(({ closedAtMs }) => closedAtMs === null);
    expect([reason, firing.length > 0 && firing.every(isSilenced)]).toEqual([reason, false]);
  }
}

/** What a person has closed rings no more, not even by the alerts that it spoke for. */
function checkClosed({ spikes, closed }: World, rows: readonly Said[]): void {
  for (const { reason, content, isGroup } of rows) {
    const { ruleId } = content as { ruleId: string };
    const spike = spikes.get(ruleId);
    if (RINGING.includes(reason) && !isGroup && spike !== undefined)
      expect([reason, ruleId, closed.has(spike.id)]).toEqual([reason, ruleId, false]);
  }
}

/** Every rule that still spikes has been told of, by itself or by its group, unless a person has closed it. */
function checkTold({ service, spikes, now }: World): void {
  const isNight = (new Date(now()).getUTCHours() + 2) % 24 < 8;
  const closedByHand = ({ record }: HeldAlert, spike: AlertSpike) =>
    record.state === "resolved" && (record.spikeId ?? 0) >= spike.id;
  for (const spike of spikes.values()) {
    if (spike.closedAtMs !== null) continue;
    const own = service.alerts.findLast(({ fingerprint }) => fingerprint === fingerprintOf(spike));
    const groups = service.alerts.filter(
      ({ isGroup, message }) => isGroup && message.members?.some(({ ruleId }) => ruleId === spike.ruleId),
    );
    const speaking = [...(own === undefined ? [] : [own]), ...groups];
    if (speaking.some((alert) => closedByHand(alert, spike))) continue;
    if (speaking.some(({ record }) => record.state === "acknowledged")) continue;
    const channels = ["chat", ...(isNight ? [] : ["board"])];
    for (const channel of channels) {
      const last = speaking.map(({ id }) =>
        service.said.findLast(
          (row) => row.alertId === id && row.channel === channel && row.reason !== "acknowledged",
        ),
      );
      const isFiring = last.some((row) => row !== undefined && row.reason !== "resolved");
      expect([spike.ruleId, channel, isFiring]).toEqual([spike.ruleId, channel, true]);
    }
  }
}

test("whatever attacks, people, silences and time do, the lifecycle keeps its promises", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = createWorld();
      const { service } = world;
      for (const next of steps) {
        world.act(next);
        const before = service.said.length;
        world.tick();
        checkAlerts(service);
        checkSilence(world, service.said.slice(before));
        checkClosed(world, service.said.slice(before));
        // A group says one thing at a time.
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
        expect(lane.at(-1)?.reason).toBe("resolved");
    }),
    { numRuns: 300 },
  );
});
