import { describe, expect, test } from "vitest";
import { joinIntervalMinutes } from "#alerts/rules/verdict-effects.ts";
import { countSenders } from "#detection/rules/assess-series.ts";
import { endIncidents, followFired, groupByKey } from "#detection/rules/incidents/follow-incidents.ts";
import { type Incident, newestNews, type PastIncident } from "#detection/rules/incidents/incident.ts";
import { findMembership } from "#detection/rules/incidents/member-share.ts";
import type { Fire } from "#detection/rules/sources/judge-sources.ts";
import type { MinuteEvent } from "#detection/rules/sources/usual-rules.ts";
import type { SourceKind } from "#model/kinds.ts";

const START = 29_000_000;

function fireOf(kind: SourceKind, key: string, score = 4): Fire {
  const count = 40;
  return {
    kind,
    key,
    score,
    count,
    members: count,
    usualMembers: 0,
    windowMinutes: 15,
    usual: 4,
    threshold: 20,
  };
}

const scanner = (address: string, score?: number) => fireOf("rules_per_ip", address, score);

/** The events of an address: one a minute, each of another rule. With a tool that is given, these are the rules of any address. */
function eventsOf(
  ip: string,
  {
    minutes = 15,
    from = START - 14,
    ...over
  }: Partial<MinuteEvent> & { minutes?: number; from?: number } = {},
): MinuteEvent[] {
  return Array.from({ length: minutes }, (_, i) => ({
    minute: from + i,
    ruleId: over.ja4 === undefined ? `94${i}00 of ${ip}` : `94${i}00`,
    ip,
    asn: "AS64500",
    ja4: `ja4 of ${ip}`,
    ua: `agent of ${ip}`,
    url: `/${ip}`,
    ...over,
  }));
}

interface Step {
  readonly at: number;
  readonly fires: readonly Fire[];
  readonly more?: number;
}

function run(steps: readonly Step[], events: readonly MinuteEvent[] = []) {
  let open: readonly Incident[] = [];
  const former: PastIncident[] = [];
  const end = (minute: number) => {
    const done = endIncidents(open, minute);
    open = done.open;
    former.push(...done.ended);
  };
  for (const { at, fires, more = 0 } of steps) {
    end(at);
    const hour = events.filter(({ minute }) => minute <= at && minute > at - 60);
    open = followFired(open, { minute: at, fires, more }, { eventsOf: groupByKey(hour), former });
  }
  return { open, former, end: (minute: number) => (end(minute), { open, former }) };
}

const namesOf = (incidents: readonly Incident[]) =>
  incidents.map(({ attackers }) => attackers.map(({ key, role }) => `${key} ${role}`));

describe("a new key", () => {
  const [one, two] = ["198.51.100.7", "203.0.113.9"];

  test("two scanners with nothing in common are two incidents", () => {
    const events = [...eventsOf(one), ...eventsOf(two)];
    const { open } = run(
      [
        { at: START, fires: [scanner(one)] },
        { at: START + 1, fires: [scanner(two)] },
      ],
      events,
    );
    expect(namesOf(open)).toEqual([[`${one} opened`], [`${two} opened`]]);
  });

  test("an address of the same network joins, and so does one with the same tool and rules", () => {
    const tool = { ja4: "tool", ua: "tool/1" };
    const events = [...eventsOf(one, tool), ...eventsOf("198.51.100.200"), ...eventsOf(two, tool)];
    const { open } = run(
      [
        { at: START, fires: [scanner(one)] },
        { at: START + 1, fires: [scanner("198.51.100.200")] },
        { at: START + 2, fires: [scanner(two)] },
      ],
      events,
    );
    expect(namesOf(open)).toEqual([[`${one} opened`, "198.51.100.200 joined", `${two} joined`]]);
  });

  test.each([
    [11, 1],
    [10, 2],
  ])(
    "an address that sends %d of 15 events to the path of another one has a part in %d incidents",
    (number, incidents) => {
      const target = eventsOf(two).map((event, i) => (i < number ? { ...event, url: "/login?a=1" } : event));
      const { open } = run(
        [
          { at: START, fires: [scanner(one)] },
          { at: START + 1, fires: [scanner(two)] },
        ],
        [...eventsOf(one, { url: "/login" }), ...target],
      );
      expect(open).toHaveLength(incidents);
    },
  );

  test.each([
    [2, 0, 1],
    [3, 0, 2],
    [0, 8, 2],
  ])(
    "an address with another tool that begins %d minutes later, with %d rules of its own, has a part in %d incidents",
    (later, own, incidents) => {
      const { open } = run(
        [
          { at: START, fires: [scanner(one)] },
          { at: START + later, fires: [scanner(two)] },
        ],
        [
          ...eventsOf(one, { ja4: "one" }),
          ...eventsOf(two, { ja4: "two", from: START - 14 + later }).map((event, i) =>
            i < own ? { ...event, ruleId: `own ${i}` } : event,
          ),
        ],
      );
      expect(open).toHaveLength(incidents);
    },
  );

  test("addresses without a JA4 and a user agent are not linked by these", () => {
    const bare = { ja4: "", ua: "" };
    const { open } = run(
      [
        { at: START, fires: [scanner(one)] },
        { at: START + 1, fires: [scanner(two)] },
      ],
      [...eventsOf(one, bare), ...eventsOf(two, { ...bare, from: START - 5, minutes: 6 })],
    );
    expect(open).toHaveLength(2);
  });

  test("a shared key that overlaps is a facet, and is no news; an address inside a shared key has a name", () => {
    const events = Array.from({ length: 40 }, (_, i) =>
      eventsOf(`192.0.2.${i}`, { minutes: 1, from: START, ja4: "bot", ua: "bot/1" }),
    ).flat();
    const { open } = run(
      [
        { at: START, fires: [fireOf("ips_per_ja4", "bot", 6), fireOf("ips_per_ua", "bot/1", 5)] },
        { at: START + 1, fires: [scanner("192.0.2.3")] },
      ],
      events,
    );
    expect(namesOf(open)).toEqual([["bot opened", "bot/1 facet", "192.0.2.3 joined"]]);
    expect(newestNews(open[0] as Incident)).toBe(START + 2);
  });

  test("a second botnet joins the first one, apart, and is news", () => {
    const bots = (ja4: string, network: string) =>
      Array.from({ length: 40 }, (_, i) =>
        eventsOf(`${network}.${i}`, { minutes: 1, from: START, ja4 }),
      ).flat();
    const { open } = run(
      [
        { at: START, fires: [fireOf("ips_per_ja4", "bot")] },
        { at: START + 1, fires: [fireOf("ips_per_ja4", "other")] },
      ],
      [...bots("bot", "192.0.2"), ...bots("other", "198.18.0")],
    );
    expect(namesOf(open)).toEqual([["bot opened", "other apart"]]);
    expect(newestNews(open[0] as Incident)).toBe(START + 2);
  });

  test("a facet that many share does not make a second botnet another view of the first", () => {
    const bots = (ja4: string, network: string) =>
      Array.from({ length: 40 }, (_, i) =>
        eventsOf(`${network}.${i}`, { minutes: 1, from: START, ja4, url: "/login" }),
      ).flat();
    const { open } = run(
      [
        { at: START, fires: [fireOf("ips_per_ja4", "bot", 6), fireOf("ips_per_url", "/login", 5)] },
        { at: START + 1, fires: [fireOf("ips_per_ja4", "other")] },
      ],
      [...bots("bot", "192.0.2"), ...bots("other", "198.18.0")],
    );
    expect(namesOf(open)).toEqual([["bot opened", "/login facet", "other apart"]]);
  });

  test("overlap is containment: a small key inside a large one is its facet, whatever their sizes", () => {
    const large = Array.from({ length: 400 }, (_, i) =>
      eventsOf(`10.0.${i >> 8}.${i & 255}`, {
        minutes: 1,
        from: START,
        ja4: "large",
        ua: i < 20 ? "small" : "x",
      }),
    ).flat();
    const { open } = run(
      [
        { at: START, fires: [fireOf("ips_per_ja4", "large")] },
        { at: START + 1, fires: [fireOf("ips_per_ua", "small")] },
      ],
      large,
    );
    expect(namesOf(open)).toEqual([["large opened", "small facet"]]);
  });
});

describe("an incident", () => {
  test("ends with its thirtieth quiet minute, also if nobody looked then", () => {
    const { end } = run([{ at: START, fires: [scanner("198.51.100.7")] }]);
    expect(end(START + 30).former).toEqual([]);
    expect(end(START + 500).former).toMatchObject([{ closedAt: START + 31 }]);
  });

  test("that comes back within half an hour has its name again, a later one has another", () => {
    const fires = [scanner("198.51.100.7")];
    const first = run([{ at: START, fires }]).open[0]?.name;
    const again = run([
      { at: START, fires },
      { at: START + 50, fires },
    ]).open[0]?.name;
    const later = run([
      { at: START, fires },
      { at: START + 70, fires },
    ]).open[0]?.name;
    expect(again).toBe(first);
    expect(later).not.toBe(first);
  });

  test("names an attacker again that was quiet for half an hour", () => {
    const [one, two] = [scanner("198.51.100.7"), scanner("203.0.113.9")];
    const tool = { ja4: "tool", ua: "tool/1", minutes: 60 };
    const events = [...eventsOf(one.key, tool), ...eventsOf(two.key, tool)];
    const { open } = run(
      [
        { at: START, fires: [one, two] },
        { at: START + 20, fires: [two] },
        { at: START + 40, fires: [one] },
      ],
      events,
    );
    expect(namesOf(open)).toEqual([["198.51.100.7 joined", "203.0.113.9 joined"]]);
    expect(newestNews(open[0] as Incident)).toBe(START + 41);
  });

  test("a key keeps its strongest minute", () => {
    const { open } = run([
      { at: START, fires: [scanner("198.51.100.7", 4)] },
      { at: START + 1, fires: [{ ...scanner("198.51.100.7", 6), members: 60 }] },
      { at: START + 2, fires: [scanner("198.51.100.7", 5)] },
    ]);
    expect(open[0]?.attackers).toMatchObject([
      { score: 6, members: 60, since: START + 1, lastFiredAt: START + 3 },
    ]);
    expect(open[0]?.severity).toBe("critical");
  });
});

test("a flood of ten thousand addresses stays bounded and says how many there are", () => {
  const addresses = Array.from({ length: 10_000 }, (_, i) => `10.${i >> 8}.${i & 255}.1`);
  const events = addresses.flatMap((ip) => eventsOf(ip, { minutes: 1, from: START }));
  const fires = addresses.slice(0, 50).map((ip) => scanner(ip));
  const { open } = run(
    Array.from({ length: 40 }, (_, i) => ({ at: START + i, fires, more: 9_950 })),
    events,
  );
  expect(open).toHaveLength(5);
  expect(Math.max(...open.map(({ attackers }) => attackers.length))).toBeLessThanOrEqual(60);
  expect(open[0]?.unnamed).toBeGreaterThan(9_900);
  expect(open[0]?.unnamed).toBeLessThanOrEqual(10_000);
});

test("a flood of one address in an hour is compared with other attackers and with a rule", () => {
  const [one, two] = ["198.51.100.7", "203.0.113.9"];
  const flood = Array.from({ length: 200 }, () =>
    eventsOf(one, { minutes: 1_000, from: START - 999 }),
  ).flat();
  const { open } = run(
    [
      { at: START, fires: [scanner(one)] },
      { at: START + 1, fires: [scanner(two)] },
    ],
    [...flood.map((event) => ({ ...event, minute: START })), ...eventsOf(two)],
  );
  expect(namesOf(open)).toEqual([[`${one} opened`], [`${two} opened`]]);
  const visitors = flood.map((event) => ({ ...event, ip: "192.0.2.1" }));
  expect(findMembership(visitors, open, visitors, true)).toBeNull();
});

test("the sixth attacker joins the oldest incident", () => {
  const addresses = Array.from({ length: 6 }, (_, i) => `198.${i}.100.7`);
  const { open } = run(
    addresses.map((ip, i) => ({ at: START + i, fires: [scanner(ip)] })),
    addresses.flatMap((ip) => eventsOf(ip)),
  );
  expect(namesOf(open)).toEqual([
    ["198.0.100.7 opened", "198.5.100.7 apart"],
    ...addresses.slice(1, 5).map((ip) => [`${ip} opened`]),
  ]);
});

describe("a rule's spike", () => {
  const [one, two] = ["198.51.100.7", "203.0.113.9"];
  const { open } = run(
    [
      { at: START, fires: [scanner(one)] },
      { at: START + 1, fires: [scanner(two)] },
    ],
    [...eventsOf(one), ...eventsOf(two)],
  );
  const ofRule = (...counts: readonly (readonly [ip: string, count: number])[]) =>
    counts.flatMap(([ip, minutes]) => eventsOf(ip, { minutes }));

  test("is a member if the attackers hold seven tenths of its events, all incidents together", () => {
    expect(findMembership(ofRule([one, 4], [two, 3], ["192.0.2.1", 3]), open)).toBe(open[0]);
    expect(findMembership(ofRule([one, 3], [two, 4], ["192.0.2.1", 3]), open)).toBe(open[1]);
    expect(findMembership(ofRule([one, 3], [two, 3], ["192.0.2.1", 4]), open)).toBeNull();
  });

  test("is a member with three tenths of its events, or most requests of the incident, if it opens just after it", () => {
    const young = followFired(
      [],
      { minute: START + 50, fires: [scanner(one)], more: 0 },
      { eventsOf: groupByKey([]), former: [] },
    );
    const visitors = Array.from({ length: 7 }, (_, i) => [`192.0.2.${i}`, 1] as [string, number]);
    const some = ofRule([one, 3], ...visitors);
    expect(findMembership(some, young, some, true)).toBe(young[0]);
    expect(findMembership(some, young, some, false)).toBeNull();
    const few = ofRule([one, 2], ...visitors);
    expect(findMembership(few, young, few, true)).toBe(young[0]);
    expect(findMembership(few, young, [...few, ...eventsOf(one, { minutes: 50 })], true)).toBeNull();
    const later = young.map((incident) => ({ ...incident, openedAt: START - 60 }));
    expect(findMembership(some, later, some, true)).toBeNull();
  });

  test("is a member if it opens while many do the same on the path of the incident, not if it was there before", () => {
    const onPath = (third: number) =>
      Array.from({ length: 10 }, (_, i) =>
        eventsOf(`192.0.${third}.${i}`, { minutes: 1, ja4: "browser", ua: `${third}`, url: "/search?q=1" }),
      ).flat();
    const attackers = Array.from({ length: 5 }, (_, i) => scanner(`192.0.2.${i}`));
    const { open: botnet } = run([{ at: START, fires: attackers }], onPath(2));
    expect(botnet).toHaveLength(1);
    const inHour = [...onPath(2), ...onPath(3)];
    expect(findMembership(onPath(3), botnet, inHour, true)).toBe(botnet[0]);
    expect(findMembership(onPath(3), botnet, inHour, false)).toBeNull();
  });

  test("is alone without an incident, and without events", () => {
    expect(findMembership(ofRule([one, 9]), [])).toBeNull();
    expect(findMembership([], open)).toBeNull();
  });
});

test("a few visitors do not hide that two addresses send most of a rule's events", () => {
  const sent = (events: readonly number[]) => events.map((n, i) => ({ ip: `203.0.113.${i}`, events: n }));
  expect(countSenders(sent([]))).toEqual({ addresses: 0, main: 0 });
  const unknown = (events: number) => ({ ip: "0.0.0.0", events });
  expect(countSenders([...sent([40, 40]), unknown(20)])).toEqual({ addresses: 2, main: 2 });
  expect(countSenders([...sent([40, 39]), unknown(20)])).toEqual({ addresses: 0, main: 0 });
  expect(countSenders(sent([1, 60, 1, 50, 1, 1]))).toEqual({ addresses: 6, main: 2 });
  expect(countSenders(sent([7, 3]))).toEqual({ addresses: 2, main: 2 });
  expect(countSenders(sent(Array<number>(30).fill(1)))).toEqual({ addresses: 30, main: 24 });
});

test("the pauses between messages about joins double from the fourth on, up to an hour", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 99].map(joinIntervalMinutes)).toEqual([5, 5, 10, 20, 40, 60, 60, 60]);
});
